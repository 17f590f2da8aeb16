// The page: what is in sight, and the stream of events that it listens to.

import { listen, setToken, takeToken } from "./api.js";
import { el } from "./dom.js";
import { faults } from "./faults.js";
import { number } from "./format.js";
import { group, groups } from "./groups.js";
import { overview } from "./overview.js";
import { config, connections } from "./tables.js";
import { topic, topics } from "./topics.js";
import { trace } from "./trace.js";

const ALWAYS = "counts,timeline,faults";
const MOST_EVENTS = 1000;
const VIEWS = [["", "Overview", overview], ["topics", "Topics", topics, topic], ["groups", "Groups", groups, group], ["connections", "Connections", connections],
  ["trace", "Trace", trace], ["faults", "Faults", faults], ["config", "Config", config]];

const $ = (id) => document.getElementById(id);

const app = {
  events: [],
  view: null,
  end: null,
  go(hash) { location.hash = hash; },
  listen(more) {
    app.end?.();
    const { of, ...query } = { ...app.view.query, ...more };
    app.view.again?.();
    app.end = listen({ of: of ? `${ALWAYS},${of}` : ALWAYS, ...query }, take, state);
  },
};

const links = new Map(VIEWS.map(([path, name]) => [path, el("a", { href: `#/${path}` }, name, el("span", { class: "count" }))]));

function show() {
  const [, path, name] = /^#\/([^/]*)\/?(.*)$/.exec(location.hash) ?? ["", "", ""];
  const [known, , many, one] = VIEWS.find(([each]) => each === path) ?? VIEWS[0];
  app.view?.close?.();
  app.events = [];
  app.view = name && one ? one(app, decodeURIComponent(name)) : many(app);
  for (const [each, link] of links) {
    if (each === known) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${app.view.title} – pykafkad`;
  $("main").replaceChildren(...app.view.element);
  app.listen({});
}

function badge(path, text, isHot = false) {
  const count = links.get(path).lastChild;
  count.textContent = text;
  count.classList.toggle("hot", isHot);
}

function take(name, value) {
  if (name === "state") {
    if (value.bootstrap) $("address").textContent = value.bootstrap;
    state(value.is_running ? "open" : "stopped");
  }
  if (name === "counts") {
    badge("topics", number(value.topics));
    badge("connections", number(value.connections));
  }
  if (name === "faults") {
    const count = value.filter((each) => !each.has_ended).length;
    badge("faults", count ? number(count) : "", count > 0);
  }
  if (name === "timeline") {
    const last = app.events.at(-1)?.number ?? 0;
    app.events = [...app.events, ...value.filter((each) => each.number > last)].slice(-MOST_EVENTS);
  }
  app.view.on(name, value);
}

function state(what, why) {
  const shown = { open: ["live", "good"], lost: ["not connected", "bad"], stopped: ["the broker does not run", "warn"], refused: ["no token", "bad"] }[what];
  $("state").textContent = shown[0];
  $("state").className = `state ${shown[1]}`;
  $("state").title = why ?? "";
  if (what === "refused") login("That token is not the one.");
}

function login(why) {
  $("login-error").textContent = why;
  if (!$("login").open) $("login").showModal();
}

$("login").addEventListener("cancel", (event) => event.preventDefault());
$("login-form").addEventListener("submit", () => { setToken($("login-token").value.trim()); $("login-token").value = ""; show(); });
$("skip").addEventListener("click", () => $("main").focus());
$("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("pykafkad-theme", root.dataset.theme);
});

const theme = localStorage.getItem("pykafkad-theme");
if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
$("nav").append(...links.values());
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) takeToken();
  show();
});
if (takeToken()) show();
else login("");
