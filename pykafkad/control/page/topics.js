// The list of topics, and one topic with its live tail.

import { ask } from "./api.js";
import { el, empty, pill, search, table, toggle } from "./dom.js";
import { FORMS, bytes, clock, fromBase64, indented, long, number, short } from "./format.js";
import { List, Rows } from "./list.js";
import { about, tag, writeForm } from "./schemas.js";

const MOST_RECORDS = 500;

export function topics(app) {
  const rows = new Rows("name");
  let wanted = "";
  let hasInternal = false;
  const count = el("span", { class: "dim" });
  const list = new List({
    label: "Topics", kind: "of-topics", key: (each) => each.name, nothing: "No topics.",
    columns: [["Name", ""], ["Partitions", "number"], ["Records", "number"], ["Size", "number"]],
    cells: (each) => [el("span", {}, each.name), el("span", { class: "number" }, number(each.partitions)),
      el("span", { class: "number" }, number(each.records)), el("span", { class: "number" }, bytes(each.bytes))],
    open: (each) => app.go(`#/topics/${encodeURIComponent(each.name)}`),
  });
  const draw = (changed) => {
    const found = rows.sorted().filter((each) => (hasInternal || !each.is_internal) && each.name.toLowerCase().includes(wanted));
    count.textContent = `${number(found.length)} topics`;
    list.set(found, changed);
  };
  return {
    title: "Topics",
    query: { of: "topics" },
    element: [
      el("div", { class: "bar" }, el("h1", {}, "Topics"), count, el("span", { class: "grow" }),
        search("Filter by name", (text) => { wanted = text; draw(new Set()); }),
        toggle("Kafka's own", false, (isOn) => { hasInternal = isOn; draw(new Set()); })),
      list.element,
    ],
    on(name, value) { if (name === "topics") draw(rows.take(value)); },
  };
}

export function topic(app, name) {
  const partitions = el("div", { class: "fill" }, empty("…"));
  const own = el("span", { class: "dim" });
  const tail = el("div", { class: "fill", "aria-label": "Records", role: "log" });
  const told = el("span", { class: "dim" });
  const form = el("select", { "aria-label": "Show as" }, FORMS.map((each) => el("option", { value: each }, each)));
  const chosen = el("select", { "aria-label": "Partition" }, el("option", { value: "-1" }, "all partitions"));
  let records = [];
  let isPaused = false;
  let wanted = "";
  let skipped = 0;

  const draw = () => {
    const found = records.filter((each) => !wanted || each.words.includes(wanted));
    // Rows stay the elements that they are, so that what has the focus keeps it and what is open stays open.
    const rows = found.slice(-MOST_RECORDS).reverse().map((each) => {
      if (each.form !== form.value) Object.assign(each, { form: form.value, element: recordRow(name, each, form.value) });
      return each.element;
    });
    const wantedRows = new Set(rows);
    for (const each of [...tail.children]) if (!wantedRows.has(each)) each.remove();
    rows.forEach((each, at) => { if (tail.children[at] !== each) tail.insertBefore(each, tail.children[at] ?? null); });
    if (!rows.length) tail.replaceChildren(empty("No records."));
    told.textContent = `${number(found.length)} shown${skipped ? `, ${number(skipped)} older` : ""}${isPaused ? ", paused" : ""}`;
  };
  form.addEventListener("change", draw);
  const listen = () => app.listen({ topic: name, partition: chosen.value });
  chosen.addEventListener("change", () => { records = []; skipped = 0; listen(); });
  const write = writeForm(name);
  const { problem } = write;

  return {
    title: name,
    query: { topic: name, partition: "-1" },
    element: [
      el("div", { class: "bar" }, el("a", { href: "#/topics" }, "Topics"), el("span", { class: "dim" }, "/"), el("h1", {}, name), own),
      el("div", { class: "columns narrow-left" },
        el("section", { class: "card tall" }, el("h2", {}, "Partitions"), partitions, write.element),
        el("section", { class: "card tall" }, el("div", { class: "bar" }, el("h2", {}, "Records"), told, el("span", { class: "grow" }),
          search("Filter", (text) => { wanted = text; draw(); }), chosen, form,
          toggle("Pause", false, (isOn) => { isPaused = isOn; draw(); })), tail)),
    ],
    on(event, value) {
      if (event === "topic") {
        own.textContent = value ? Object.entries(value.settings).map(([key, each]) => `${key}=${each}`).join(", ") : "";
        partitions.replaceChildren(value ? partitionTable(value.partitions) : empty("There is no such topic."));
        if (value && chosen.options.length !== value.partitions.length + 1) {
          chosen.append(...value.partitions.slice(chosen.options.length - 1).map((each) => el("option", { value: String(each.partition) }, `partition ${each.partition}`)));
        }
      }
      if (event === "records" && !isPaused) {
        skipped += value.left_out;
        const come = value.records.map((each) => ({ ...each, key: fromBase64(each.key), value: fromBase64(each.value), isNew: records.length > 0 }));
        const decoder = new TextDecoder();
        for (const each of come) {
          each.words = ["key", "value"].map((part) => each[`${part}_by_schema`]?.json ?? (each[part] ? decoder.decode(each[part]) : "")).join(" ").toLowerCase();
        }
        records = [...records, ...come].slice(-2 * MOST_RECORDS);
        draw();
      }
      if (event === "records-error") problem.textContent = value;
    },
    again() { records = []; skipped = 0; },
  };
}

function partitionTable(rows) {
  return table([["#", "number"], ["Leader", "number"], ["From", "number"], ["To", "number"], ["Size", "number"]],
    rows.slice(0, 1000).map((each) => [number(each.partition), each.leader < 0 ? pill("none", "bad") : String(each.leader), number(each.start_offset),
      number(each.end_offset), bytes(each.bytes)]));
}

function recordRow(topic, record, form) {
  const inside = el("div", { class: "inside" });
  const made = el("details", { class: `record${record.isNew ? " lit" : ""}` },
    el("summary", {}, el("span", { class: "mono dim" }, clock(record.timestamp_ms)), el("span", { class: "mono dim" }, `${record.partition} · ${record.offset}`),
      inLine(record, "key", form), inLine(record, "value", form)), inside);
  made.open = record.element?.open ?? false;
  const fill = () => { if (made.open && !inside.firstChild) inside.append(...whole(topic, record, form, inside)); };
  made.addEventListener("toggle", fill);
  fill();
  return made;
}

// By schema where somebody has written it so, unless its bytes are wanted.
function bySchema(record, part, form) {
  return form === "auto" || form === "json" ? record[`${part}_by_schema`] : null;
}

function inLine(record, part, form) {
  const told = bySchema(record, part, form);
  if (!told) return short(record[part], form);
  const shown = told.json === null ? short(record[part], form) : el("span", { class: "mono" }, told.json.slice(0, 400));
  return el("span", {}, tag(told), " ", shown);
}

function inFull(record, part, form) {
  const told = bySchema(record, part, form);
  if (!told) return [long(record[part], form)];
  return [told.json === null ? long(record[part], "hex") : indented(told.json), about(told)];
}

function whole(topic, record, form, inside) {
  const cut = (content, size) => content !== null && content.length < size;
  const parts = [
    el("span", { class: "dim" }, `partition ${record.partition}, offset ${number(record.offset)}, ${new Date(record.timestamp_ms).toISOString()}, key ${bytes(record.key_bytes)}, value ${bytes(record.value_bytes)}`),
    el("h2", {}, "Key"), ...inFull(record, "key", form), el("h2", {}, "Value"), ...inFull(record, "value", form),
  ];
  if (record.headers.length) {
    parts.push(el("h2", {}, "Headers"), table([["Name", "mono"], ["Value", "mono"]], record.headers.map((each) => [each.name, short(fromBase64(each.value), form)])));
  }
  const isCut = (part) => cut(record[part], record[`${part}_bytes`]) || record[`${part}_by_schema`]?.is_cut;
  if (isCut("key") || isCut("value")) {
    parts.push(el("button", { type: "button", onclick: async () => {
      const found = await ask("GET", `/topics/${encodeURIComponent(topic)}/records?partition=${record.partition}&offset=${record.offset}&limit=1&by_schema=true`);
      const [all] = found.records;
      const { key_by_schema, value_by_schema } = all;
      Object.assign(record, { key: fromBase64(all.key_base64), value: fromBase64(all.value_base64), key_by_schema, value_by_schema });
      inside.replaceChildren(...whole(topic, record, form, inside));
    } }, "Show all of it"));
  }
  return parts;
}
