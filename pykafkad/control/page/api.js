// Requests to the control API. The token is kept for this tab alone, and is sent in a header, never in an address.

const KEPT = "pykafkad-token";

let token = "";

export function takeToken() {
  const given = /^#token=(.+)$/.exec(location.hash);
  if (given) {
    token = decodeURIComponent(given[1]);
    sessionStorage.setItem(KEPT, token);
    history.replaceState(null, "", location.pathname + "#/");
  } else {
    token = sessionStorage.getItem(KEPT) ?? "";
  }
  return token !== "";
}

export function setToken(text) {
  token = text;
  sessionStorage.setItem(KEPT, text);
}

export class Refused extends Error {
  constructor(status, error) {
    super([error.what, error.where && `in ${error.where}`, error.allowed && `allowed: ${error.allowed}`].filter(Boolean).join("; "));
    this.status = status;
  }
}

function headers(more = {}) {
  return { Authorization: `Bearer ${token}`, ...more };
}

async function answered(method, path, body, signal) {
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  const answer = await fetch(path, {
    method, signal, ...content, headers: headers(body === undefined ? {} : { "Content-Type": "application/json" }),
    cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
  });
  if (!answer.ok) {
    const told = await answer.json().catch(() => ({ error: { what: `status ${answer.status}` } }));
    throw new Refused(answer.status, told.error);
  }
  return answer;
}

export async function ask(method, path, body) {
  return (await answered(method, path, body)).json();
}

export async function download(path, name) {
  const content = await (await answered("GET", path)).blob();
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// Server-sent events by fetch, since EventSource sends no headers. Returns what ends it.
export function listen(query, onEvent, onState) {
  const ending = new AbortController();
  const address = `/events?${new URLSearchParams(query)}`;
  (async () => {
    let pause = 250;
    while (!ending.signal.aborted) {
      try {
        const answer = await answered("GET", address, undefined, ending.signal);
        pause = 250;
        onState("open");
        await read(answer.body.getReader(), onEvent);
        onState("lost");
      } catch (error) {
        if (ending.signal.aborted) return;
        if (error instanceof Refused && error.status === 401) return onState("refused");
        onState("lost", error.message);
      }
      await new Promise((done) => setTimeout(done, pause));
      pause = Math.min(pause * 2, 4000);
    }
  })();
  return () => ending.abort();
}

async function read(reader, onEvent) {
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      let name = "message";
      let data = "";
      for (const line of block.split("\n")) {
        if (line.startsWith("event: ")) name = line.slice(7);
        else if (line.startsWith("data: ")) data += line.slice(6);
      }
      if (data) onEvent(name, JSON.parse(data));
    }
  }
}
