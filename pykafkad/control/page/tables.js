// Connections and settings: plain tables.

import { ask } from "./api.js";
import { el, empty, pill, search, table, toggle } from "./dom.js";
import { bytes, number } from "./format.js";
import { Rows } from "./list.js";

export function connections() {
  const rows = new Rows("id");
  const box = el("div", { class: "fill" }, empty("Nobody is connected."));
  return {
    title: "Connections",
    query: { of: "connections" },
    element: [el("h1", {}, "Connections"), el("section", { class: "card tall" }, box)],
    on(name, value) {
      if (name !== "connections") return;
      rows.take(value);
      const found = rows.sorted();
      box.replaceChildren(found.length ? table([["Peer", "mono"], ["Broker", "number"], ["Listener", ""], ["Principal", ""], ["Client", ""], ["Waits in", ""], ["Idle", "number"], ["To send", "number"]],
        found.map((each) => [each.peer, number(each.broker), each.listener, each.principal, [each.client_id, each.software].filter(Boolean).join(" · "), each.waits_in ? pill(each.waits_in, "good") : "",
          `${number(each.idle_seconds)} s`, bytes(each.outbox_bytes)])) : empty("Nobody is connected."));
    },
  };
}

export function config() {
  const box = el("div", { class: "fill" }, empty("…"));
  let found = [];
  let wanted = "";
  let isAll = false;
  const draw = () => {
    const rows = found.filter((each) => (isAll || each.source !== "default") && each.name.includes(wanted));
    box.replaceChildren(rows.length ? table([["Name", "mono"], ["Value", "mono"], ["From", ""]],
      rows.map((each) => [each.name, each.is_sensitive ? "a secret" : each.value ?? "–", each.source === "default" ? el("span", { class: "dim" }, "default") : pill(each.source, "good")]))
      : empty("No settings like that. “Defaults” shows the others."));
  };
  ask("GET", "/config").then((answer) => { found = answer.settings; draw(); }, (error) => box.replaceChildren(el("p", { class: "error empty" }, error.message)));
  return {
    title: "Config",
    query: {},
    element: [el("div", { class: "bar" }, el("h1", {}, "Config"), el("span", { class: "grow" }), search("Filter by name", (text) => { wanted = text; draw(); }),
      toggle("Defaults", false, (isOn) => { isAll = isOn; draw(); })), el("section", { class: "card tall" }, box)],
    on() {},
  };
}
