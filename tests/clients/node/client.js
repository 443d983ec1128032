// kafkajs: COMMAND BOOTSTRAP TOPIC ..., see the README beside the clients. It reads only in groups.
"use strict";

const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require("kafkajs");
const snappy = require("kafkajs-snappy");
const lz4 = require("lz4-napi");
const { ZstdCodec } = require("zstd-codec");

CompressionCodecs[CompressionTypes.Snappy] = snappy;
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: (encoder) => lz4.compressFrame(encoder.buffer),
  decompress: (buffer) => lz4.decompressFrame(buffer),
});
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: (encoder) =>
    new Promise((resolve) =>
      ZstdCodec.run((zstd) => resolve(Buffer.from(new zstd.Simple().compress(encoder.buffer)))),
    ),
  decompress: (buffer) =>
    new Promise((resolve) =>
      ZstdCodec.run((zstd) => resolve(Buffer.from(new zstd.Simple().decompress(buffer)))),
    ),
});

const TYPES = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
};

async function main([command, bootstrap, topic, ...rest]) {
  const kafka = new Kafka({ clientId: "kafkajs", brokers: bootstrap.split(","), logLevel: logLevel.ERROR });
  if (command === "create") {
    const admin = kafka.admin();
    await admin.connect();
    const created = await admin.createTopics({ topics: [{ topic, numPartitions: Number(rest[0]) }] });
    await admin.disconnect();
    if (!created) throw new Error(`${topic} was there already`);
  } else if (command === "produce") {
    const [codec, count] = rest;
    const producer = kafka.producer({ idempotent: true });
    await producer.connect();
    const messages = Array.from({ length: Number(count) }, (_, i) => ({
      key: `${codec}-${i}`,
      value: `${codec}-${i} ` + "all work and no play ".repeat(20),
    }));
    await producer.send({ topic, compression: TYPES[codec], messages });
    await producer.disconnect();
  } else if (command === "group") {
    await member(kafka, topic, rest[0]);
  } else {
    throw new Error(`unknown command ${command}`);
  }
}

// A member of a group, until it is asked to end: every record it reads, and every offset that it has committed.
async function member(kafka, topic, groupId) {
  const consumer = kafka.consumer({
    groupId,
    sessionTimeout: 6000,
    heartbeatInterval: 500,
    maxWaitTimeInMs: 200,
    retry: { retries: 100, maxRetryTime: 1000 },
  });
  const asked = new Promise((resolve) => process.on("SIGTERM", resolve));
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachBatch: async ({ batch, resolveOffset, isRunning, isStale }) => {
      if (!isRunning() || isStale()) return;
      for (const message of batch.messages) {
        console.log(`read\t${batch.partition}\t${message.offset}`);
        resolveOffset(message.offset);
      }
      const offset = (BigInt(batch.lastOffset()) + 1n).toString();
      try {
        await consumer.commitOffsets([{ topic, partition: batch.partition, offset }]);
        console.log(`committed\t${batch.partition}\t${offset}`);
      } catch (error) {
        console.log(`failed\t${error}`);
        throw error;
      }
    },
  });
  await asked;
  await consumer.disconnect();
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
