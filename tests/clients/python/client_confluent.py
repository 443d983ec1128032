"""confluent-kafka: COMMAND BOOTSTRAP TOPIC ..., see the README beside the clients."""

import sys

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from values import records, show


def create(bootstrap, topic, partitions):
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(topic, num_partitions=int(partitions), replication_factor=1)
    for future in admin.create_topics([new]).values():
        future.result(30)


def produce(bootstrap, topic, codec, count):
    failures = []
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20})

    def delivered(error, message):
        if error is not None:
            failures.append(error)

    for key, value in records(codec, int(count)):
        producer.produce(topic, key=key, value=value, on_delivery=delivered)
    left = producer.flush(60)
    if left or failures:
        sys.exit(f"{left} records not delivered, failures: {failures[:3]}")


def consume(bootstrap, topic, partition, end):
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
        show(message.offset(), message.key(), message.value())
        position = message.offset() + 1
    consumer.close()


if __name__ == "__main__":
    {"create": create, "produce": produce, "consume": consume}[sys.argv[1]](*sys.argv[2:])
