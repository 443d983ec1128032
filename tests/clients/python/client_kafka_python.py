"""kafka-python: COMMAND BOOTSTRAP TOPIC ..., see the README beside the clients."""

import sys

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError

from values import Stop, committed, failed, read, records, session_ms, show


def create(bootstrap, topic, partitions):
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(topic, num_partitions=int(partitions), replication_factor=1)])
    admin.close()


def produce(bootstrap, topic, codec, count):
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        linger_ms=20,
        acks="all",
    )
    futures = [producer.send(topic, key=key, value=value) for key, value in records(codec, int(count))]
    producer.flush(60)
    for future in futures:
        future.get(60)
    producer.close()


def consume(bootstrap, topic, partition, end):
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False, consumer_timeout_ms=60000
    )
    assigned = TopicPartition(topic, int(partition))
    consumer.assign([assigned])
    consumer.seek_to_beginning(assigned)
    position = 0
    while position < int(end):
        try:
            message = next(consumer)
        except StopIteration:
            sys.exit(f"nothing came after offset {position}")
        show(message.offset, message.key, message.value)
        position = message.offset + 1
    consumer.close()


def group(bootstrap, topic, name, instance=None):
    """A member of a group, until it is asked to end: every record it reads, and every offset that it has committed."""
    stop = Stop()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=name,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        group_instance_id=instance,
        session_timeout_ms=session_ms(instance),
        heartbeat_interval_ms=500,
    )
    while not stop:
        offsets = {}
        for partition, messages in consumer.poll(timeout_ms=200, max_records=20).items():
            for message in messages:
                read(partition.partition, message.offset)
            offsets[partition] = OffsetAndMetadata(messages[-1].offset + 1, "", -1)
        if not offsets:
            continue
        try:
            consumer.commit(offsets)
            for partition, it in offsets.items():
                committed(partition.partition, it.offset)
        except KafkaError as error:
            failed(repr(error))
    consumer.close()


if __name__ == "__main__":
    {"create": create, "produce": produce, "consume": consume, "group": group}[sys.argv[1]](*sys.argv[2:])
