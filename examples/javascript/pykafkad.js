// A broker for tests: starts `pykafkad serve`, and asks its control API. One file to copy; it needs Node 18.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const READY = /^pykafkad ready with control=(\S+) control\.token=(\S+) .*\bon (\S+)$/;

export class Refused extends Error {
  constructor(status, { what, where, allowed }) {
    super([what, where && `in ${where}`, allowed && `allowed: ${allowed}`].filter(Boolean).join("; "));
    this.status = status;
  }
}

export class Broker {
  #process; #url; #token;

  /** Starts a broker in memory on a free port. `settings` are Kafka's of a broker. */
  static async start({ command = process.env.PYKAFKAD ?? "pykafkad", settings = {} } = {}) {
    const set = Object.entries({ "group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1", ...settings })
      .flatMap(([name, value]) => ["--set", `${name}=${value}`]);
    const [program, ...words] = command.split(" ");
    const broker = new Broker();
    const child = spawn(program, [...words, "serve", "--listen", "127.0.0.1:0", "--memory", "64MB", "--control", "0", ...set],
      { stdio: ["ignore", "pipe", "pipe"] });
    broker.#process = child;
    process.once("exit", () => child.kill());
    let told = "";
    child.stderr.on("data", (text) => { told = (told + text).slice(-10_000); });
    const ready = await new Promise((resolve, reject) => {
      child.once("error", (error) => reject(new Error(`${program}: ${error.message}`)));
      child.once("exit", (code) => reject(new Error(`pykafkad ended with ${code}: ${told}`)));
      createInterface({ input: child.stdout }).on("line", (line) => { const found = READY.exec(line); if (found) resolve(found); });
    });
    [, broker.#url, broker.#token, broker.bootstrap] = ready;
    return broker;
  }

  async stop() {
    const ended = new Promise((resolve) => { this.#process.once("exit", resolve); });
    if (this.#process.exitCode !== null) return;
    this.#process.kill();
    await ended;
  }

  /** Any route of the control API: its answer. */
  async ask(method, path, body) {
    const answer = await fetch(this.#url + path, {
      method, headers: { Authorization: `Bearer ${this.#token}`, "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    const content = text ? JSON.parse(text) : null;
    if (!answer.ok) throw new Refused(answer.status, content.error);
    return content;
  }

  createTopic(name, partitions = 1, settings = {}) { return this.ask("POST", "/topics", { name, partitions, settings }); }
  produce(topic, ...records) { return this.ask("POST", `/topics/${topic}/records`, { records }); }
  async records(topic) { return (await this.ask("GET", `/topics/${topic}/records`)).records; }
  async waitForRecords(topic, count, timeoutSeconds = 10) {
    return (await this.ask("POST", "/waits/records", { topic, count, timeout_seconds: timeoutSeconds })).records;
  }
  waitForLag(group, lag = 0, timeoutSeconds = 10) { return this.ask("POST", "/waits/lag", { group, lag, timeout_seconds: timeoutSeconds }); }
  group(name) { return this.ask("GET", `/groups/${name}`); }
  reset() { return this.ask("POST", "/reset"); }

  /** Something goes wrong, as in `fault("answer", ["Produce"], { error: "NOT_LEADER_OR_FOLLOWER" })`. */
  async fault(kind, apis, more = {}) {
    const { number } = await this.ask("POST", "/faults", { kind, apis, ...more });
    return {
      count: async () => (await this.ask("GET", `/faults/${number}`)).count,
      release: () => this.ask("DELETE", `/faults/${number}`),
    };
  }
}
