// `node round.js REGISTRY BOOTSTRAP TOPIC`: registers a schema of each kind with kafkajs's client of a schema
// registry, writes a value by each and reads them all; prints one line of JSON.
const { Kafka, logLevel } = require("kafkajs");
const { SchemaRegistry, SchemaType, COMPATIBILITY } = require("@kafkajs/confluent-schema-registry");

const [host, bootstrap, topic] = process.argv.slice(2);
// Nothing may keep the process longer than this.
const ROUND_MS = 240000;

const AVRO = { type: "record", name: "Order", namespace: "shop", fields: [{ name: "amount", type: "int" }] };
const WIDER = { ...AVRO, fields: [...AVRO.fields, { name: "city", type: "string", default: "Bern" }] };
const JSON_SCHEMA = { type: "object", properties: { amount: { type: "integer" } }, required: ["amount"] };
const PROTOBUF = 'syntax = "proto3"; package shop; message Order { int32 amount = 1; repeated string cities = 2; }';

const run = async () => {
  const registry = new SchemaRegistry({ host });
  const kinds = [
    ["avro", SchemaType.AVRO, JSON.stringify(AVRO), { amount: 5 }],
    ["json", SchemaType.JSON, JSON.stringify(JSON_SCHEMA), { amount: 6 }],
    ["protobuf", SchemaType.PROTOBUF, PROTOBUF, { amount: 7, cities: ["Bern"] }],
  ];
  const ids = {};
  const messages = [];
  for (const [name, type, schema, value] of kinds) {
    const subject = `${topic}-${name}`;
    const { id } = await registry.register({ type, schema }, { subject, compatibility: COMPATIBILITY.BACKWARD });
    const again = await registry.register({ type, schema }, { subject });
    ids[name] = [id, again.id, await registry.getLatestSchemaId(subject), await registry.getRegistryId(subject, 1)];
    messages.push({ key: name, value: await registry.encode(id, value) });
  }
  const wider = await registry.register({ type: SchemaType.AVRO, schema: JSON.stringify(WIDER) }, { subject: `${topic}-avro` });
  let refused = "";
  const text = { ...AVRO, fields: [{ name: "amount", type: "string" }] };
  await registry.register({ type: SchemaType.AVRO, schema: JSON.stringify(text) }, { subject: `${topic}-avro` })
    .catch((error) => { refused = `${error.status || ""} ${error.message}`; });

  const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING, connectionTimeout: 10000, retry: { retries: 12, maxRetryTime: 5000 } });
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic, messages });
  await producer.disconnect();
  // As another program does, which knows nothing yet.
  const reader = new SchemaRegistry({ host });
  const consumer = kafka.consumer({ groupId: `${topic}-readers` });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  const read = {};
  await new Promise((done, failed) => {
    consumer.run({
      eachMessage: async ({ message }) => {
        try {
          read[message.key.toString()] = await reader.decode(message.value);
        } catch (error) { failed(error); }
        if (Object.keys(read).length === kinds.length) done();
      },
    }).catch(failed);
  });
  await consumer.disconnect();
  return { ids, wider: wider.id, refused, read };
};

setTimeout(() => { console.error(`no end after ${ROUND_MS} ms`); process.exit(3); }, ROUND_MS).unref();
run().then((result) => { console.log(JSON.stringify(result)); process.exit(0); }, (error) => { console.error(error); process.exit(1); });
