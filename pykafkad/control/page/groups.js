// Groups with their members and lag.

import { el, empty, pill, search, table } from "./dom.js";
import { number } from "./format.js";
import { List, Rows } from "./list.js";

function statePill(state) {
  const kind = { Stable: "good", Empty: "", Dead: "" }[state] ?? "warn";
  return pill(state, kind);
}

export function groups(app) {
  const rows = new Rows("name");
  let wanted = "";
  const list = new List({
    label: "Groups", kind: "of-groups", key: (each) => each.name, nothing: "No groups.",
    columns: [["Name", ""], ["Type", ""], ["State", ""], ["Members", "number"], ["Lag", "number"]],
    cells: (each) => [el("span", {}, each.name), el("span", { class: "dim" }, each.type), el("span", {}, statePill(each.state)),
      el("span", { class: "number" }, number(each.members)), el("span", { class: "number" }, number(each.lag))],
    open: (each) => app.go(`#/groups/${encodeURIComponent(each.name)}`),
  });
  const draw = (changed) => list.set(rows.sorted().filter((each) => each.name.toLowerCase().includes(wanted)), changed);
  return {
    title: "Groups",
    query: { of: "groups" },
    element: [el("div", { class: "bar" }, el("h1", {}, "Groups"), el("span", { class: "grow" }), search("Filter by name", (text) => { wanted = text; draw(new Set()); })), list.element],
    on(name, value) { if (name === "groups") draw(rows.take(value)); },
  };
}

export function group(app, name) {
  const state = el("span", {});
  const members = el("div", { class: "fill" }, empty("…"));
  const lag = el("div", { class: "fill" }, empty("…"));
  return {
    title: name,
    query: { group: name },
    element: [
      el("div", { class: "bar" }, el("a", { href: "#/groups" }, "Groups"), el("span", { class: "dim" }, "/"), el("h1", {}, name), state),
      el("div", { class: "columns" }, el("section", { class: "card tall" }, el("h2", {}, "Members"), members),
        el("section", { class: "card tall" }, el("h2", {}, "Offsets and lag"), lag)),
    ],
    on(event, value) {
      if (event !== "group") return;
      if (!value) {
        state.replaceChildren(pill("there is none", "bad"));
        members.replaceChildren(empty("There is no such group."));
        lag.replaceChildren(empty(""));
        return;
      }
      state.replaceChildren(statePill(value.state), " ", el("span", { class: "dim" }, value.type));
      members.replaceChildren(value.members.length ? table([["Client", ""], ["Has", "mono"]],
        value.members.map((each) => [el("span", { title: each.member_id }, each.client_id || each.member_id), assigned(each.assigned)])) : empty("No members."));
      const behind = new Map(value.lag.map((each) => [`${each.topic}-${each.partition}`, each.records]));
      const most = Math.max(1, ...behind.values());
      lag.replaceChildren(value.offsets.length ? table([["Partition", "mono"], ["Committed", "number"], ["Lag", "number"], ["", ""]],
        value.offsets.map((each) => {
          const records = behind.get(`${each.topic}-${each.partition}`) ?? null;
          const fill = el("i", {});
          fill.style.width = `${((records ?? 0) / most) * 100}%`;
          return [`${each.topic}-${each.partition}`, number(each.offset), number(records), el("div", { class: "meter" }, fill)];
        })) : empty("It has committed nothing."));
    },
  };
}

function assigned(partitions) {
  const found = new Map();
  for (const each of partitions) found.set(each.topic, [...(found.get(each.topic) ?? []), each.partition]);
  return [...found].map(([topic, indexes]) => `${topic}: ${indexes.join(", ")}`).join("; ") || "nothing";
}
