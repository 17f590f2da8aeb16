"""A record written and read back by each of three Python clients, with the options of a login or of a listener."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from compat_tests.samples import wait_until

SECONDS = 30.0


def by_confluent_kafka(topic: str, group: str, options: dict[str, Any]) -> None:
    """With a consumer group."""
    producer = Producer(options)
    producer.produce(topic, b"by librdkafka")
    assert producer.flush(SECONDS) == 0
    consumer = Consumer({**options, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[Any] = []
    wait_until(lambda: found.append(consumer.poll(1)) or (found[-1] and not found[-1].error()), "a record")
    assert found[-1].value() == b"by librdkafka"
    consumer.close()


def by_kafka_python(topic: str, options: dict[str, Any]) -> None:
    """Without a group."""
    producer = KafkaProducer(**options)
    producer.send(topic, b"by kafka-python").get(SECONDS)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", **options)
    assert next(consumer).value == b"by kafka-python"
    consumer.close()


def by_aiokafka(topic: str, options: dict[str, Any]) -> None:
    """Without a group."""

    async def there_and_back() -> bytes:
        producer = AIOKafkaProducer(**options)
        await producer.start()
        await producer.send_and_wait(topic, b"by aiokafka")
        await producer.stop()
        consumer = AIOKafkaConsumer(topic, auto_offset_reset="earliest", **options)
        await consumer.start()
        record = await consumer.getone()
        await consumer.stop()
        return record.value

    assert asyncio.run(asyncio.wait_for(there_and_back(), 2 * SECONDS)) == b"by aiokafka"
