"""The program that is tested: it writes orders, and sums up what was ordered."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


async def place(settings: dict[str, Any], orders: list[dict[str, Any]]) -> None:
    async with AIOKafkaProducer(**settings) as producer:
        for order in orders:
            await producer.send_and_wait("orders", json.dumps(order).encode(), order["customer"].encode())


async def sums(settings: dict[str, Any], count: int) -> dict[str, int]:
    found: Counter[str] = Counter()
    async with AIOKafkaConsumer("orders", **settings) as consumer:
        for _ in range(count):
            order = json.loads((await consumer.getone()).value)
            found[order["customer"]] += order["amount"]
    return dict(found)
