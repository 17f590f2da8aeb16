// Numbers, times and bytes as people read them.

import { el } from "./dom.js";

const whole = new Intl.NumberFormat("en");

export function number(value) {
  return value === null || value === undefined ? "–" : whole.format(value);
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) { value /= 1000; at += 1; }
  return `${at ? value.toFixed(value < 10 ? 1 : 0) : value} ${units[at]}`;
}

export function took(milliseconds) {
  return `${milliseconds < 10 ? milliseconds.toFixed(2) : number(Math.round(milliseconds))} ms`;
}

export function clock(milliseconds) {
  const at = new Date(milliseconds);
  const two = (value) => String(value).padStart(2, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

export function fromBase64(text) {
  return text === null ? null : Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
}

function asText(content) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(content);
    // Other control characters than these are no text.
    return /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/.test(text) ? null : text;
  } catch {
    return null;
  }
}

function asHex(content) {
  const lines = [];
  for (let at = 0; at < content.length; at += 16) {
    const part = [...content.slice(at, at + 16)];
    const digits = part.map((each) => each.toString(16).padStart(2, "0")).join(" ").padEnd(47);
    const letters = part.map((each) => (each >= 32 && each < 127 ? String.fromCharCode(each) : "·")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${digits}  ${letters}`);
  }
  return lines.join("\n");
}

export const FORMS = ["auto", "text", "json", "hex"];

// What is shown in one line of a key or value.
export function short(content, form) {
  if (content === null) return el("span", { class: "dim" }, "null");
  const text = form === "hex" ? null : asText(content);
  if (text === null) {
    return el("span", { class: "mono" }, [...content.slice(0, 64)].map((each) => each.toString(16).padStart(2, "0")).join(" "));
  }
  return el("span", { class: "mono" }, text.slice(0, 400).replaceAll("\n", "⏎"));
}

// All of a key or value: JSON is indented and coloured.
export function long(content, form) {
  if (content === null) return el("pre", {}, "null");
  const text = form === "hex" ? null : asText(content);
  if (text === null) return el("pre", {}, asHex(content));
  if (form !== "text") {
    try {
      const value = JSON.parse(text);
      if (form === "json" || typeof value === "object") return json(value);
    } catch {
      if (form === "json") return el("pre", {}, el("span", { class: "error" }, "not JSON: "), text);
    }
  }
  return el("pre", {}, text);
}

export function json(value) {
  return coloured(JSON.stringify(value, null, 2));
}

// JSON in lines. Its numbers stay as they are written: those of a schema may be larger than numbers here.
export function indented(text) {
  let out = "";
  let depth = 0;
  let last = "";
  for (const [part] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g)) {
    const isClosing = part === "}" || part === "]";
    if (isClosing) depth -= 1;
    const isNewLine = isClosing ? last !== "{" && last !== "[" : last === "," || last === "{" || last === "[";
    out += `${isNewLine ? `\n${"  ".repeat(depth)}` : ""}${part}${part === ":" ? " " : ""}`;
    if (part === "{" || part === "[") depth += 1;
    last = part;
  }
  return coloured(out);
}

function coloured(text) {
  const made = el("pre", {});
  let last = 0;
  for (const found of text.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g)) {
    made.append(text.slice(last, found.index));
    const kind = found[2] !== undefined ? "key" : found[1] !== undefined ? "string" : "value";
    made.append(el("span", { class: kind }, found[1] ?? found[0]), found[2] ?? "");
    last = found.index + found[0].length;
  }
  made.append(text.slice(last));
  return made;
}
