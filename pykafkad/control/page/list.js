// A list of many rows of one height, of which only those in sight are elements. Arrow keys choose, Enter opens.

import { el } from "./dom.js";

const HEIGHT = 36;
let lists = 0;

export class List {
  // `columns` are the heads; `cells(item)` makes those of a row; `open(item)` acts on one; `key(item)` tells them apart.
  constructor({ label, kind, columns, cells, open, key, nothing }) {
    Object.assign(this, { kind, cells, open, key, nothing });
    this.items = [];
    this.chosen = null;
    this.shown = new Map();
    this.id = `list-${(lists += 1)}`;
    this.space = el("div", { class: "list-space", role: "presentation" });
    this.none = el("div", { class: "empty" }, nothing);
    this.box = el("div", { class: "list", tabIndex: 0, role: "listbox", "aria-label": label, onscroll: () => this.draw(), onkeydown: (event) => this.pressed(event) },
      this.none, this.space);
    const head = el("div", { class: `row head ${kind}`, "aria-hidden": "true" }, columns.map(([name, type]) => el("span", { class: type }, name)));
    this.element = el("div", { class: "card tall" }, head, this.box);
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  set(items, changed = new Set()) {
    this.items = items;
    this.changed = changed;
    this.space.style.height = `${items.length * HEIGHT}px`;
    this.none.hidden = items.length > 0;
    this.draw(true);
  }

  draw(isNew = false) {
    const first = Math.max(0, Math.floor(this.box.scrollTop / HEIGHT) - 8);
    const last = Math.min(this.items.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / HEIGHT) + 8);
    const wanted = new Map();
    for (let at = first; at < last; at += 1) {
      const item = this.items[at];
      const key = this.key(item);
      let row = this.shown.get(key);
      if (!row || row.item !== item) {
        const made = el("div", { class: `row ${this.kind}`, role: "option", onclick: () => this.choose(at, true) }, this.cells(item));
        if (isNew && this.changed.has(key) && row) made.classList.add("lit");
        row?.element.remove();
        row = { item, element: made };
        this.space.append(made);
      }
      row.element.id = `${this.id}-${at}`;
      row.element.setAttribute("aria-posinset", at + 1);
      row.element.setAttribute("aria-setsize", this.items.length);
      row.element.setAttribute("aria-selected", String(key === this.chosen));
      row.element.classList.toggle("chosen", key === this.chosen);
      row.element.style.transform = `translateY(${at * HEIGHT}px)`;
      row.element.onclick = () => this.choose(at, true);
      wanted.set(key, row);
    }
    for (const [key, row] of this.shown) if (wanted.get(key) !== row) row.element.remove();
    this.shown = wanted;
  }

  choose(at, isOpened) {
    const item = this.items[at];
    if (item === undefined) return;
    this.chosen = this.key(item);
    const top = at * HEIGHT;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + HEIGHT > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = top + HEIGHT - this.box.clientHeight;
    this.draw();
    this.box.setAttribute("aria-activedescendant", `${this.id}-${at}`);
    if (isOpened) this.open(item);
  }

  pressed(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / HEIGHT) - 1);
    const at = this.items.findIndex((each) => this.key(each) === this.chosen);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.items.length, End: this.items.length };
    if (event.key in steps) {
      event.preventDefault();
      this.choose(Math.min(this.items.length - 1, Math.max(0, at + steps[event.key])), false);
    } else if (event.key === "Enter" && at >= 0) {
      event.preventDefault();
      this.open(this.items[at]);
    }
  }
}

// Rows that come as changes: all at first, then those that differ, and the keys of those that are gone.
export class Rows {
  constructor(key) {
    this.key = key;
    this.known = new Map();
  }
  take({ rows, gone }) {
    for (const each of gone) this.known.delete(each);
    for (const each of rows) this.known.set(each[this.key], each);
    return new Set(rows.map((each) => each[this.key]));
  }
  sorted() {
    return [...this.known.values()].sort((one, other) => (one[this.key] < other[this.key] ? -1 : 1));
  }
}
