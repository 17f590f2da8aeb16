// The program that is tested: it writes orders, and sums up what was ordered.

export async function place(kafka, orders) {
  const producer = kafka.producer();
  await producer.connect();
  try {
    await producer.send({ topic: "orders", messages: orders.map((each) => ({ key: each.customer, value: JSON.stringify(each) })) });
  } finally {
    await producer.disconnect();
  }
}

export async function sums(kafka, count) {
  const consumer = kafka.consumer({ groupId: "sums" });
  await consumer.connect();
  const found = {};
  await consumer.subscribe({ topic: "orders", fromBeginning: true });
  await new Promise((resolve) => {
    let seen = 0;
    consumer.run({
      eachMessage: async ({ message }) => {
        const { customer, amount } = JSON.parse(message.value);
        found[customer] = (found[customer] ?? 0) + amount;
        seen += 1;
        if (seen === count) resolve();
      },
    });
  });
  await consumer.disconnect();
  return found;
}
