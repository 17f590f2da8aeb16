import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";

import kafkajs from "kafkajs";

import { place, sums } from "./orders.js";
import { Broker } from "./pykafkad.js";

let broker, kafka;

before(async () => {
  broker = await Broker.start();
  kafka = new kafkajs.Kafka({ brokers: [broker.bootstrap], clientId: "shop", logLevel: kafkajs.logLevel.NOTHING, retry: { initialRetryTime: 20 } });
});
after(() => broker.stop());
beforeEach(async () => {
  await broker.reset();
  await broker.createTopic("orders", 3);
});

test("orders are written", async () => {
  await place(kafka, [{ customer: "ann", amount: 2 }]);
  const [record] = await broker.records("orders");
  assert.equal(record.key, "ann");
  assert.deepEqual(JSON.parse(record.value), { customer: "ann", amount: 2 });
});

test("orders survive a leader that moves", async () => {
  const fault = await broker.fault("answer", ["Produce"], { error: "NOT_LEADER_OR_FOLLOWER", topic: "orders", times: 1 });
  await place(kafka, [{ customer: "ann", amount: 2 }]);
  assert.equal(await fault.count(), 1);
  assert.equal((await broker.waitForRecords("orders", 1)).length, 1);
});

test("orders are summed up", async () => {
  await broker.produce("orders", ...[1, 2, 3].map((amount) => ({ key: "ann", value: JSON.stringify({ customer: "ann", amount }) })));
  assert.deepEqual(await sums(kafka, 3), { ann: 6 });
  await broker.waitForLag("sums");
});

test("a misspelt fault is named", async () => {
  await assert.rejects(broker.fault("answer", ["Produze"], { error: "NOT_LEADER_OR_FOLLOWER" }), /Produze.*Produce/);
});
