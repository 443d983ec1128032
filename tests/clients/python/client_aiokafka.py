"""aiokafka: COMMAND BOOTSTRAP TOPIC ..., see the README beside the clients."""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from values import Stop, committed, failed, read, records, session_ms, show


async def create(bootstrap, topic, partitions):
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    answer = await admin.create_topics(
        [NewTopic(topic, num_partitions=int(partitions), replication_factor=1)]
    )
    await admin.close()
    errors = [entry for entry in answer.topic_errors if entry[1] != 0]
    if errors:
        sys.exit(f"not created: {errors}")


async def produce(bootstrap, topic, codec, count):
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        linger_ms=20,
        enable_idempotence=True,
    )
    await producer.start()
    futures = [
        await producer.send(topic, key=key, value=value) for key, value in records(codec, int(count))
    ]
    await asyncio.gather(*futures)
    await producer.stop()


async def consume(bootstrap, topic, partition, end):
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
    await consumer.start()
    assigned = TopicPartition(topic, int(partition))
    consumer.assign([assigned])
    await consumer.seek_to_beginning(assigned)
    position = 0
    while position < int(end):
        message = await asyncio.wait_for(consumer.getone(), 60)
        show(message.offset, message.key, message.value)
        position = message.offset + 1
    await consumer.stop()


async def group(bootstrap, topic, name, instance=None):
    """A member of a group, until it is asked to end: every record it reads, and every offset that it has committed."""
    stop = Stop()
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=name,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        group_instance_id=instance,
        session_timeout_ms=session_ms(instance),
        heartbeat_interval_ms=500,
    )
    await consumer.start()
    while not stop:
        offsets = {}
        for partition, messages in (await consumer.getmany(timeout_ms=200, max_records=20)).items():
            for message in messages:
                read(partition.partition, message.offset)
            offsets[partition] = messages[-1].offset + 1
        if not offsets:
            continue
        try:
            await consumer.commit(offsets)
            for partition, offset in offsets.items():
                committed(partition.partition, offset)
        except KafkaError as error:
            failed(repr(error))
    await consumer.stop()


if __name__ == "__main__":
    commands = {"create": create, "produce": produce, "consume": consume, "group": group}
    asyncio.run(commands[sys.argv[1]](*sys.argv[2:]))
