// Elements made of values: texts stay texts, whatever a record or a name holds.

export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (name in made && !name.startsWith("aria")) made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((each) => each !== null && each !== undefined && each !== false));
  return made;
}

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function pill(text, kind = "") {
  return el("span", { class: `pill ${kind}` }, text);
}

export function empty(text) {
  return el("div", { class: "empty" }, text);
}

export function search(label, act) {
  return el("input", { type: "search", placeholder: label, "aria-label": label, oninput: (event) => act(event.target.value.trim().toLowerCase()) });
}

export function toggle(text, isOn, act) {
  const made = el("button", { type: "button", "aria-pressed": String(isOn) }, text);
  made.addEventListener("click", () => {
    const now = made.getAttribute("aria-pressed") !== "true";
    made.setAttribute("aria-pressed", String(now));
    act(now);
  });
  return made;
}

export function table(columns, rows) {
  const head = columns.map(([name, kind]) => el("th", { class: kind, scope: "col" }, name));
  const body = rows.map((row) => el("tr", {}, row.map((cell, at) => el("td", { class: columns[at][1] }, cell))));
  return el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body));
}

// A line of the last values, as wide as its tile.
export class Sparkline {
  constructor(label) {
    this.values = [];
    this.line = svg("polyline", {});
    this.area = svg("polygon", {});
    this.number = el("b", {}, "–");
    const drawing = svg("svg", { viewBox: "0 0 100 34", preserveAspectRatio: "none", "aria-hidden": "true" }, this.area, this.line);
    this.element = el("div", { class: "tile" }, el("span", { class: "dim" }, label), this.number, drawing);
  }
  add(value, text) {
    this.values = [...this.values, value].slice(-60);
    this.number.textContent = text;
    const most = Math.max(...this.values, 1);
    const points = this.values.map((each, at) => `${(at + 60 - this.values.length) * (100 / 59)},${31 - (each / most) * 28}`);
    this.line.setAttribute("points", points.join(" "));
    const left = (60 - this.values.length) * (100 / 59);
    this.area.setAttribute("points", [`${left},34`, ...points, "100,34"].join(" "));
  }
}
