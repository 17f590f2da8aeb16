// The wire trace: requests as they come, one of them decoded.

import { ask, download } from "./api.js";
import { el, empty, pill, search } from "./dom.js";
import { bytes, clock, json, took } from "./format.js";
import { List } from "./list.js";

const MOST = 2000;

export function trace(app) {
  let rows = new Map();
  let wanted = "";
  const problem = el("p", { class: "error", role: "alert" });
  const detail = el("section", { class: "card tall", "aria-live": "polite" }, el("h2", {}, "Request"), el("div", { class: "fill" }, empty("Choose a request to see it decoded.")));
  const act = (method, path) => ask(method, path).catch((error) => { problem.textContent = error.message; });
  const onOff = el("button", { type: "button", class: "main", onclick: () => act("POST", onOff.dataset.isOn ? "/trace/stop" : "/trace/start") }, "Record");
  const list = new List({
    label: "Requests", kind: "of-requests", key: (each) => each.number, nothing: "Nothing is recorded. “Record” begins it.",
    columns: [["Time", ""], ["API", ""], ["", ""], ["Client", ""], ["About", ""], ["Took", "number"], ["Errors", ""]],
    cells: (each) => [el("span", { class: "mono dim" }, clock(each.time_ms)), el("span", {}, each.api), el("span", { class: "dim" }, `v${each.version}`),
      el("span", {}, each.client_id), el("span", { class: "mono" }, each.about), el("span", { class: "number" }, each.is_answered ? took(each.duration_ms) : "waits"),
      el("span", {}, each.errors.map((name) => pill(name, "bad")))],
    open: async (each) => {
      const found = await ask("GET", `/trace/${each.number}`).catch((error) => ({ error: error.message }));
      const { request, answer, ...head } = found;
      detail.replaceChildren(el("h2", {}, `${each.api} v${each.version}`), el("div", { class: "fill" }, el("div", { class: "inside" },
        el("span", { class: "dim" }, `${each.client_id} ${each.peer}, ${bytes(each.request_bytes)} asked, ${bytes(each.answer_bytes)} answered`),
        found.error ? el("p", { class: "error" }, found.error) : [el("h2", {}, "Request"), json(request), el("h2", {}, "Answer"), json(answer), el("h2", {}, "Both"), json(head)])));
    },
  });
  const lint = async () => {
    const found = await ask("GET", "/lint?upgrade=true").catch((error) => ({ findings: [], error: error.message }));
    const row = (each) => el("p", {}, pill(each.rule, each.rule.startsWith("upgrade-") ? "" : "bad"), ` ${each.client_id}: ${each.seen}. `, el("span", { class: "dim" }, each.advice));
    const nothing = found.error ?? "Nothing to tell of these requests.";
    detail.replaceChildren(el("h2", {}, "Lint"), el("div", { class: "fill" }, found.findings.length ? el("div", { class: "inside" }, found.findings.map(row)) : empty(nothing)));
  };
  const draw = () => list.set([...rows.values()].filter((each) => !wanted || `${each.api} ${each.client_id} ${each.about} ${each.errors.join(" ")}`.toLowerCase().includes(wanted)).reverse());
  return {
    title: "Trace",
    query: { of: "trace" },
    element: [
      el("div", { class: "bar" }, el("h1", {}, "Trace"), onOff, el("button", { type: "button", onclick: async () => { await act("DELETE", "/trace"); rows = new Map(); draw(); } }, "Clear"),
        el("button", { type: "button", onclick: lint }, "Lint"),
        el("span", { class: "grow" }), search("Filter by API, client, error", (text) => { wanted = text; draw(); }),
        ["txt", "jsonl", "pcap"].map((each) => el("button", { type: "button", onclick: () => download(`/trace.${each}`, `trace.${each}`) }, `.${each}`)), problem),
      el("div", { class: "columns wide-left" }, list.element, detail),
    ],
    on(name, value) {
      if (name === "trace-state") {
        onOff.dataset.isOn = value.is_on ? "yes" : "";
        onOff.textContent = value.is_on ? "Stop" : "Record";
      }
      if (name === "trace") {
        for (const each of value) rows.set(each.number, each);
        rows = new Map([...rows].sort(([one], [other]) => one - other).slice(-MOST));
        draw();
      }
    },
    again() { rows = new Map(); },
  };
}
