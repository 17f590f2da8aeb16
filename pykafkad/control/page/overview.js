// What happens now: rates, and the timeline.

import { Sparkline, el, empty, search } from "./dom.js";
import { clock, number } from "./format.js";

const KINDS = { warning: "warn", error: "bad" };
const MOST = 500;

export function overview(app) {
  const tiles = { messages_in: new Sparkline("messages in per second"), requests: new Sparkline("requests per second"), connections: new Sparkline("connections") };
  const rows = el("div", { class: "fill", role: "log", "aria-label": "Timeline" }, empty("Nothing has happened yet."));
  let wanted = "";
  let last = null;
  let now = null;

  const draw = () => {
    const found = app.events.filter((each) => !wanted || line(each).toLowerCase().includes(wanted)).slice(-MOST).reverse();
    rows.replaceChildren(...(found.length ? found.map(eventRow) : [empty(wanted ? "Nothing of that." : "Nothing has happened yet.")]));
  };
  const timer = setInterval(() => {
    if (!now) return;
    const seconds = last ? (now.at - last.at) / 1000 : 0;
    for (const name of ["messages_in", "requests"]) {
      const rate = last && seconds > 0 ? Math.max(0, Math.round((now.counts[name] - last.counts[name]) / seconds)) : 0;
      tiles[name].add(rate, number(rate));
    }
    tiles.connections.add(now.counts.connections, number(now.counts.connections));
    last = now;
    now = { ...now, at: performance.now() };
  }, 1000);

  draw();
  return {
    title: "Overview",
    query: {},
    element: [
      el("h1", {}, "Overview"),
      el("div", { class: "tiles" }, Object.values(tiles).map((each) => each.element)),
      el("section", { class: "card tall" }, el("div", { class: "bar" }, el("h2", {}, "Timeline"), el("span", { class: "grow" }),
        search("Filter the timeline", (text) => { wanted = text; draw(); })), rows),
    ],
    on(name, value) {
      if (name === "counts") now = { counts: value, at: performance.now() };
      if (name === "timeline") draw();
    },
    close: () => clearInterval(timer),
  };
}

function line(event) {
  return `${event.event} ${Object.entries(event.fields).map(([name, value]) => `${name}=${value}`).join(" ")}`;
}

function eventRow(event) {
  const kind = event.part === "control" ? "" : KINDS[event.level] ?? "good";
  const fields = Object.entries(event.fields).flatMap(([name, value]) => [el("span", { class: "dim" }, `${name} `), `${value}   `]);
  return el("div", { class: "row of-events", title: line(event) }, el("span", { class: "mono dim" }, clock(event.time_ms)),
    el("span", {}, el("span", { class: `pill ${kind}` }, event.event)), el("span", { class: "mono" }, fields));
}
