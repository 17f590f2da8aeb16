// Faults: set, watched and released.

import { ask } from "./api.js";
import { el, empty, pill } from "./dom.js";
import { number } from "./format.js";

export function faults(app) {
  const rows = el("div", { class: "fill" }, empty("No faults."));
  const problem = el("p", { class: "error wide", role: "alert" });
  const act = (method, path, body) => ask(method, path, body).then(() => { problem.textContent = ""; }, (error) => { problem.textContent = error.message; });
  const form = el("form", { class: "form" }, el("span", { class: "dim" }, "…"));

  ask("GET", "/openapi.json").then((description) => {
    const fields = description.paths["/faults"].post.requestBody.content["application/json"].schema.properties;
    const explained = Object.fromEntries(fields.kind.description.split("; ").map((each) => each.split(": ")));
    const options = (id, names) => el("datalist", { id }, names.map((each) => el("option", { value: each })));
    const text = (label, name, more = {}) => el("label", {}, label, el("input", { name, autocomplete: "off", ...more }));
    const kind = el("select", { name: "kind" }, fields.kind.enum.map((each) => el("option", { value: each }, each.replaceAll("_", " "))));
    const what = el("span", { class: "dim wide" });
    const error = el("label", {}, "Error", el("input", { name: "error", value: "NOT_LEADER_OR_FOLLOWER", autocomplete: "off" }));
    error.lastChild.setAttribute("list", "error-names");
    const delay = text("Milliseconds", "delay_ms", { type: "number", value: "500", min: "0" });
    const byte = text("At byte", "at_byte", { type: "number", value: "10", min: "0" });
    const apis = text("APIs", "apis", { value: "Produce", required: true });
    apis.lastChild.setAttribute("list", "api-names");
    const shown = () => {
      what.textContent = explained[kind.value] ?? "";
      error.hidden = kind.value !== "answer";
      delay.hidden = !kind.value.startsWith("delay");
      byte.hidden = kind.value !== "cut_answer";
      if (kind.value === "corrupt_records") apis.lastChild.value = "Fetch";
    };
    kind.addEventListener("change", shown);
    form.replaceChildren(el("label", {}, "What happens", kind), apis, error, delay, byte, text("Topic", "topic"), text("Partition", "partition", { type: "number", min: "0" }),
      text("Group", "group"), text("Client id", "client_id"), text("Times (empty: until released)", "times", { type: "number", value: "1", min: "1" }),
      text("Probability", "probability", { type: "number", value: "1", min: "0.01", max: "1", step: "0.01" }),
      el("button", { class: "main", type: "submit" }, "Switch on"), what, problem,
      options("error-names", fields.error.enum.filter(Boolean)), options("api-names", fields.apis.items.enum));
    shown();
  }).catch((error) => form.replaceChildren(el("p", { class: "error" }, error.message)));

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(form));
    const body = { kind: given.kind, apis: given.apis.split(/[\s,]+/).filter(Boolean), times: given.times === "" ? null : Number(given.times), probability: Number(given.probability) };
    if (body.kind === "answer") body.error = given.error;
    if (body.kind.startsWith("delay")) body.delay_ms = Number(given.delay_ms);
    if (body.kind === "cut_answer") body.at_byte = Number(given.at_byte);
    for (const name of ["topic", "group", "client_id"]) if (given[name]) body[name] = given[name];
    if (given.partition !== "") body.partition = Number(given.partition);
    act("POST", "/faults", body);
  });

  return {
    title: "Faults",
    query: {},
    element: [
      el("div", { class: "bar" }, el("h1", {}, "Faults"), el("span", { class: "grow" }), el("button", { type: "button", onclick: () => act("DELETE", "/faults") }, "Release all")),
      el("section", { class: "card" }, el("h2", {}, "A new fault"), form),
      el("section", { class: "card tall" }, el("h2", {}, "Set so far"), rows),
    ],
    on(name, value) {
      if (name !== "faults") return;
      rows.replaceChildren(...(value.length ? [...value].reverse().map((each) => el("div", { class: "bar card-row" },
        each.has_ended ? pill("off") : pill("on", "warn"), el("span", { class: "mono" }, each.text), el("span", { class: "grow" }),
        el("span", { class: "dim" }, `fired ${number(each.count)}×${each.passed ? `, passed ${number(each.passed)}×` : ""}`),
        el("button", { type: "button", disabled: each.has_ended, onclick: () => act("DELETE", `/faults/${each.number}`) }, "Release"))) : [empty("No faults.")]));
    },
  };
}
