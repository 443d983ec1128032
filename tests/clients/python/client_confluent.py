"""confluent-kafka: COMMAND BOOTSTRAP TOPIC ..., see the README beside the clients."""

import sys

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from values import Stop, committed, failed, read, records, session_ms, show


def create(bootstrap, topic, partitions):
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(topic, num_partitions=int(partitions), replication_factor=1)
    for future in admin.create_topics([new]).values():
        future.result(30)


def produce(bootstrap, topic, codec, count, headers=None):
    failures = []
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20})

    def delivered(error, message):
        if error is not None:
            failures.append(error)

    for key, value in records(codec, int(count)):
        producer.produce(topic, key=key, value=value, headers=headers, on_delivery=delivered)
    left = producer.flush(60)
    if left or failures:
        sys.exit(f"{left} records not delivered, failures: {failures[:3]}")


def produce_headers(bootstrap, topic, codec, count):
    """As produce, with headers of every kind: a name that stands twice, empty, null, beyond ASCII."""
    headers = [("trace", codec.encode()), ("empty", b""), ("none", None), ("größe", b"\xff"), ("trace", b"2")]
    produce(bootstrap, topic, codec, count, headers)


def messages(bootstrap, topic, partition, end):
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
        }
    )
    consumer.assign([TopicPartition(topic, int(partition), OFFSET_BEGINNING)])
    position = 0
    while position < int(end):
        message = consumer.poll(60)
        if message is None:
            sys.exit(f"nothing came after offset {position}")
        if message.error():
            sys.exit(str(message.error()))
        yield message
        position = message.offset() + 1
    consumer.close()


def consume(bootstrap, topic, partition, end):
    for message in messages(bootstrap, topic, partition, end):
        show(message.offset(), message.key(), message.value())


def consume_all(bootstrap, topic, partition, end):
    """One line a record with all that the library tells of it."""
    for message in messages(bootstrap, topic, partition, end):
        kind, timestamp = message.timestamp()
        kind = "LogAppendTime" if kind == TIMESTAMP_LOG_APPEND_TIME else "CreateTime"
        facts = [message.offset(), message.leader_epoch(), kind, timestamp]
        print(*facts, message.headers(), message.key(), message.value(), sep="\t")


def group(bootstrap, topic, name, instance=None):
    """A member of a group, until it is asked to end: every record it reads, and every offset that it has committed."""
    stop = Stop()
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": name,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": session_ms(instance),
            "heartbeat.interval.ms": 500,
        }
        | ({"group.instance.id": instance} if instance else {})
    )
    consumer.subscribe([topic])
    while not stop:
        offsets = {}
        for message in consumer.consume(20, 0.2):
            if message.error():
                print(message.error(), file=sys.stderr)
                continue
            read(message.partition(), message.offset())
            offsets[message.partition()] = message.offset() + 1
        if not offsets:
            continue
        try:
            wanted = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
            for it in consumer.commit(offsets=wanted, asynchronous=False):
                if it.error is None:
                    committed(it.partition, it.offset)
                else:
                    failed(it.error)
        except KafkaException as error:
            failed(error)
    consumer.close()


if __name__ == "__main__":
    commands = {
        "create": create,
        "produce": produce,
        "produce-headers": produce_headers,
        "consume": consume,
        "consume-all": consume_all,
        "group": group,
    }
    commands[sys.argv[1]](*sys.argv[2:])
