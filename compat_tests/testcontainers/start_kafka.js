// Starts an image by the module of Testcontainers, prints where clients reach it, and stops it when its input ends.
const { KafkaContainer } = require("@testcontainers/kafka");

async function main([image, network, kind]) {
  const asked = new KafkaContainer(image).withNetworkMode(network);
  const kafka = await (kind === "kraft" ? asked.withKraft() : asked).start();
  console.log(`bootstrap=${kafka.getHost()}:${kafka.getMappedPort(9093)}`);
  for await (const _ of process.stdin);
  await kafka.stop();
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
