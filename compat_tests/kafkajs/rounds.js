// `node rounds.js ROUND BOOTSTRAP TOPIC GROUP`: one round with kafkajs; the result is printed as one line of JSON.
// `troubles` in it names each consumer that had to be replaced. A round that fails prints its error and kafkajs' log.
const { Kafka, CompressionTypes, logLevel } = require("kafkajs");

const [round, bootstrap, topic, groupId] = process.argv.slice(2);
// A consumer that got no record for this long is replaced: kafkajs waits for ever after some errors, without telling.
const STALL_MS = 40000;
const CONSUMERS = 4;
// Nothing may keep the process longer than this.
const ROUND_MS = 240000;
const EXIT_CODE_LATE = 3;

const late = (message) => Object.assign(new Error(message), { isLate: true });

const logged = [];
const troubles = [];
const kafka = new Kafka({
  brokers: [bootstrap],
  clientId: "rounds",
  // On a busy machine a connection takes longer than kafkajs' one second, and its five attempts are soon over.
  connectionTimeout: 10000,
  retry: { retries: 12, maxRetryTime: 5000 },
  logLevel: logLevel.INFO,
  logCreator: () => ({ namespace, label, log }) => {
    logged.push(`${log.timestamp} ${label} ${namespace} ${JSON.stringify({ ...log, timestamp: undefined, stack: undefined })}`);
  },
});

const withClient = async (client, use) => {
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.disconnect();
  }
};

const produce = (values, options = {}) =>
  withClient(kafka.producer(options.producer), (producer) =>
    producer.send({ topic, acks: -1, compression: options.compression, messages: values.map(asMessage) }),
  );

// Repeat a request for up to a minute until `accept` takes its answer: a broker learns of changes a moment after the controller.
const until = async (ask, accept) => {
  for (let left = 600; ; left--) {
    const answer = await ask();
    if (accept(answer) || left === 0) return answer;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
};

const asMessage = (value, index) => ({
  key: `key-${index % 3}`,
  value,
  partition: index % 2,
  headers: { index: String(index) },
  timestamp: String(1700000000000 + index),
});

// Read until `expected` messages have arrived, then commit and leave the group.
const consume = async (expected) => {
  const seen = new Map();
  for (let left = CONSUMERS - 1; ; left--) {
    try {
      await consumeMore(seen, expected);
      return [...seen.values()].sort((one, other) => one[0] - other[0] || one[1] - other[1]);
    } catch (error) {
      if (left === 0) throw error;
      troubles.push(`a consumer was replaced: ${error.message}`);
    }
  }
};

// Add what one consumer reads to `seen`; an error if it crashes, or reads nothing for `STALL_MS`.
const consumeMore = async (seen, expected) => {
  // Sessions are short, so that a consumer that went without leaving does not hold up the next one.
  const consumer = kafka.consumer({
    groupId,
    sessionTimeout: 10000,
    rebalanceTimeout: 15000,
    metadataMaxAge: 5000,
    // Stopping waits for the fetch that is under way.
    maxWaitTimeInMs: 200,
    retry: { retries: 12, maxRetryTime: 5000, restartOnFailure: async () => false },
  });
  let stalled;
  try {
    await new Promise((resolve, reject) => {
      const isHere = () => {
        clearTimeout(stalled);
        stalled = setTimeout(() => reject(late(`no record for ${STALL_MS} ms, ${seen.size} are here`)), STALL_MS);
        if (seen.size >= expected) resolve();
      };
      consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
      const run = async () => {
        isHere();
        await consumer.connect();
        await consumer.subscribe({ topic, fromBeginning: true });
        await consumer.run({
          eachMessage: async ({ partition, message }) => {
            const { key, value, offset, timestamp, headers } = message;
            const record = [partition, Number(offset), String(key), String(value), timestamp, String(headers.index)];
            if (seen.has(`${partition} ${offset}`)) troubles.push(`partition ${partition}, offset ${offset}: read twice`);
            seen.set(`${partition} ${offset}`, record);
            isHere();
          },
        });
      };
      run().catch(reject);
    });
  } finally {
    clearTimeout(stalled);
    await within(STALL_MS, consumer.disconnect());
  }
};

// Wait for `promise`, but not longer than `limitMs`.
const within = async (limitMs, promise) => {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(late(`the consumer did not disconnect in ${limitMs} ms`)), limitMs);
  });
  await Promise.race([promise, limit]).finally(() => clearTimeout(timer));
};

const rounds = {
  async compressed() {
    await produce(["plain-0", "plain-1"]);
    await produce(["zipped-0", "zipped-1", "zipped-2"], { compression: CompressionTypes.GZIP });
    return { seen: await consume(5) };
  },

  async idempotent() {
    const answered = await produce(["a", "b", "c", "d"], { producer: { idempotent: true, maxInFlightRequests: 1 } });
    return { offsets: answered.map((each) => [each.partition, each.errorCode, each.baseOffset]).sort() };
  },

  async groups() {
    await produce(["x", "y", "z"]);
    await consume(3);
    return withClient(kafka.admin(), async (admin) => {
      const committed = await admin.fetchOffsets({ groupId, topics: [topic] });
      await admin.resetOffsets({ groupId, topic, earliest: true });
      const reset = await admin.fetchOffsets({ groupId, topics: [topic] });
      const { groups } = await admin.describeGroups([groupId]);
      const listed = (await admin.listGroups()).groups.filter((each) => each.groupId === groupId);
      const deleted = await admin.deleteGroups([groupId]);
      return { committed, reset, state: groups[0].state, listed, deleted };
    });
  },

  async admin() {
    return withClient(kafka.admin(), async (admin) => {
      const created = await admin.createTopics({ topics: [{ topic: `${topic}-new`, numPartitions: 1 }], waitForLeaders: true });
      const again = await admin.createTopics({ topics: [{ topic: `${topic}-new` }] });
      await admin.createPartitions({ topicPartitions: [{ topic: `${topic}-new`, count: 3 }] });
      const settings = { type: 2, name: `${topic}-new`, configEntries: [{ name: "retention.ms", value: "60000" }] };
      await admin.alterConfigs({ validateOnly: false, resources: [settings] });
      const resources = [{ type: 2, name: `${topic}-new`, configNames: ["retention.ms"] }];
      const described = await until(
        () => admin.describeConfigs({ includeSynonyms: false, resources }),
        (answer) => answer.resources[0].configEntries[0].configValue === "60000",
      );
      const { topics } = await until(
        () => admin.fetchTopicMetadata({ topics: [`${topic}-new`] }),
        (answer) => answer.topics[0].partitions.length === 3,
      );
      const partitions = topics[0].partitions.map((each) => each.partitionId).sort();
      await produce(["1", "2", "3", "4"]);
      await admin.fetchTopicOffsets(topic);
      await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: "1" }] });
      const offsets = (await admin.fetchTopicOffsets(topic)).sort((one, other) => one.partition - other.partition);
      await admin.deleteTopics({ topics: [`${topic}-new`] });
      const [{ configEntries }] = described.resources;
      return { created, again, partitions, settings: configEntries.map((each) => each.configValue), offsets };
    });
  },
};

const fail = (error) => {
  console.error(error);
  console.error([...troubles, ...logged].join("\n"));
  process.exit(error.isLate ? EXIT_CODE_LATE : 1);
};

setTimeout(() => fail(late(`the round did not end in ${ROUND_MS} ms`)), ROUND_MS);
rounds[round]().then((result) => {
  console.log(JSON.stringify({ ...result, troubles }));
  process.exit(0);
}, fail);
