"""The application runs as it is, beside a broker that the fixture `kafka_cluster` brings."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from billing import application


@asynccontextmanager
async def running(kafka):
    broker = application(kafka.client_config("faststream"), price=5)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


def invoices(kafka, count):
    found = kafka.wait_for_records("invoices", count)
    return [(each.key.decode(), json.loads(each.value)["total"]) for each in found]


@pytest.mark.kafka(topics=["orders", "invoices"])
def test_orders_are_billed(kafka_cluster):
    async def run():
        async with running(kafka_cluster):
            kafka_cluster.produce("orders", '{"customer": "ann", "amount": 2}', '{"customer": "bob", "amount": 3}')
            return await asyncio.to_thread(invoices, kafka_cluster, 2)

    assert asyncio.run(run()) == [("ann", 10), ("bob", 15)]


@pytest.mark.kafka(topics=["orders", "invoices"])
def test_an_invoice_survives_a_leader_that_moves(kafka_cluster):
    async def run():
        async with running(kafka_cluster) as broker:
            with kafka_cluster.faults.answer("Produce", "NOT_LEADER_OR_FOLLOWER", topic="invoices") as fault:
                await broker.publish({"customer": "ann", "amount": 1}, "orders")
                found = await asyncio.to_thread(invoices, kafka_cluster, 1)
                assert fault.count == 1
                return found

    assert asyncio.run(run()) == [("ann", 5)]


@pytest.mark.kafka(topics=["orders", "invoices"])
def test_a_restart_goes_on_behind_what_was_billed(kafka_cluster):
    async def run(value, count):
        async with running(kafka_cluster):
            kafka_cluster.produce("orders", value)
            found = await asyncio.to_thread(invoices, kafka_cluster, count)
            await asyncio.to_thread(kafka_cluster.wait_for_lag, "billing", 0)
            return found

    assert asyncio.run(run('{"customer": "ann", "amount": 1}', 1)) == [("ann", 5)]
    assert asyncio.run(run('{"customer": "ann", "amount": 2}', 2)) == [("ann", 5), ("ann", 10)]
