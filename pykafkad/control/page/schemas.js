// Keys and values by the schemas of the broker's registry: how they are shown, and a form that writes them.

import { ask } from "./api.js";
import { el, pill } from "./dom.js";
import { indented } from "./format.js";

const KINDS = { AVRO: "Avro", JSON: "JSON Schema", PROTOBUF: "Protobuf" };
const AS_TEXT = "";

export function kindOf(told) {
  return KINDS[told.type] ?? told.type;
}

// What stands before a value in one line.
export function tag(told) {
  const made = told.problem ? pill(`schema ${told.id}?`, "warn") : pill(kindOf(told), "kind");
  made.title = told.problem ?? `${told.name || "schema"} (schema ${told.id})`;
  return made;
}

// What is told of a schema beside a value, with its text once somebody wants to see it.
export function about(told) {
  if (told.problem) return el("p", { class: "error" }, told.problem);
  const text = el("div", {});
  const made = el("details", { class: "schema" }, el("summary", {}, `${kindOf(told)} schema ${told.id}`, told.name ? el("span", { class: "mono" }, told.name) : null), text);
  made.addEventListener("toggle", async () => {
    if (!made.open || text.firstChild) return;
    try {
      const { type, schema } = await ask("GET", `/schemas/${told.id}`);
      text.append(type === "PROTOBUF" ? el("pre", {}, schema) : indented(schema));
    } catch (error) { text.replaceChildren(el("p", { class: "error" }, error.message)); }
  });
  return made;
}

// A value that fits the beginnings of a schema, for people to change.
export function example(type, text) {
  if (type === "PROTOBUF") return "{}";
  try {
    return JSON.stringify((type === "AVRO" ? ofAvro : ofJson)(JSON.parse(text), 0), null, 2);
  } catch {
    return "{}";
  }
}

function ofAvro(schema, depth) {
  if (Array.isArray(schema)) return schema.includes("null") ? null : ofAvro(schema[0], depth);
  const type = schema?.type ?? schema;
  if (depth > 8) return null;
  if (Array.isArray(type) || (typeof type === "object" && type !== null)) return ofAvro(type, depth + 1);
  if (schema.logicalType === "uuid") return "00000000-0000-0000-0000-000000000000";
  if (schema.logicalType === "date") return "2026-01-31";
  if (/^(local-)?timestamp/.test(schema.logicalType ?? "")) return schema.logicalType.startsWith("local") ? "2026-01-31T12:00:00" : "2026-01-31T12:00:00+00:00";
  if (schema.logicalType === "decimal") return "0";
  if (type === "record") return Object.fromEntries(schema.fields.map((each) => [each.name, each.default !== undefined ? each.default : ofAvro(each.type, depth + 1)]));
  if (type === "enum") return schema.symbols[0];
  return { string: "", int: 0, long: 0, float: 0, double: 0, boolean: false, bytes: "", array: [], map: {} }[type] ?? null;
}

function ofJson(schema, depth) {
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (schema.properties && depth < 8) return Object.fromEntries(Object.entries(schema.properties).map(([name, each]) => [name, ofJson(each, depth + 1)]));
  return { string: "", integer: 0, number: 0, boolean: false, array: [], object: {} }[type] ?? null;
}

// The form that writes a record: values as they are, or as JSON by the schema of a subject.
export function writeForm(name) {
  const problem = el("p", { class: "error wide", role: "alert" });
  const done = el("span", { class: "dim", role: "status" });
  const value = el("textarea", { name: "value", rows: 2, spellcheck: false, autocomplete: "off", class: "mono" });
  const subject = el("select", { name: "subject" });
  const as = el("label", { hidden: true }, "Value by schema", subject);
  let latest = null;
  let filled = "";

  const fill = () => {
    const isLatest = latest !== null && subject.value === latest.subject;
    // What somebody has written stays.
    if (value.value === filled) value.value = filled = isLatest ? example(latest.type, latest.schema) : "";
    value.rows = Math.min(12, Math.max(2, value.value.split("\n").length));
    value.placeholder = subject.value === AS_TEXT ? "" : "JSON";
  };
  const look = async () => {
    const found = await ask("GET", `/topics/${encodeURIComponent(name)}/schemas`).catch((error) => { problem.textContent = error.message; return null; });
    if (!found?.has_registry) return;
    const isNew = latest === null && found.value !== null;
    latest = found.value;
    const others = found.subjects.filter((each) => each !== latest?.subject);
    const chosen = isNew ? latest.subject : subject.value;
    subject.replaceChildren(el("option", { value: AS_TEXT }, "none: text as it is"),
      ...(latest ? [el("option", { value: latest.subject }, `${latest.subject} (${kindOf(latest)})`)] : []), ...others.map((each) => el("option", { value: each }, each)));
    subject.value = chosen;
    as.hidden = found.subjects.length === 0;
    fill();
  };
  subject.addEventListener("change", fill);
  // Enter writes a text, as in a field of one line; JSON has lines, and is written by Ctrl and Enter.
  value.addEventListener("keydown", (event) => {
    const isText = subject.value === AS_TEXT && !event.shiftKey;
    if (event.key !== "Enter" || !(isText || event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    element.requestSubmit();
  });
  value.addEventListener("input", () => { value.rows = Math.min(12, Math.max(2, value.value.split("\n").length)); });

  const element = el("form", { class: "form", onsubmit: async (event) => {
    event.preventDefault();
    const { key } = element.elements;
    const by = subject.value && subject.value !== AS_TEXT ? { value_schema: { subject: subject.value } } : {};
    try {
      const { records: [where] } = await ask("POST", `/topics/${encodeURIComponent(name)}/records`, { records: [{ key: key.value || null, value: value.value }], ...by });
      problem.textContent = "";
      done.textContent = `Written to partition ${where.partition}, offset ${where.offset}.`;
      filled = value.value = "";
      fill();
    } catch (error) {
      done.textContent = "";
      problem.textContent = error.message;
    }
  } }, el("h2", { class: "wide" }, "Write a record"), el("label", {}, "Key", el("input", { name: "key", autocomplete: "off", spellcheck: false })), as, el("label", { class: "wide" }, "Value", value),
    el("div", { class: "bar wide" }, el("button", { class: "main", type: "submit", title: "Ctrl + Enter" }, "Write"), done), problem);
  // Schemas may be registered at any time.
  element.addEventListener("focusin", (event) => { if (!element.contains(event.relatedTarget)) look(); });
  look();
  return { element, problem };
}
