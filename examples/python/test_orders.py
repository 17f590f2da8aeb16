"""The fixture `kafka_cluster` comes with pykafkad: nothing is imported, and nothing is configured."""

from __future__ import annotations

import asyncio
import json

import orders
import pytest

ANN = [{"customer": "ann", "amount": amount} for amount in (1, 2, 3)]


@pytest.mark.kafka(topics={"orders": 3})
def test_orders_are_written(kafka_cluster):
    asyncio.run(orders.place(kafka_cluster.client_config("aiokafka"), ANN))
    assert [json.loads(each.value) for each in kafka_cluster.records("orders")] == ANN


@pytest.mark.kafka(topics={"orders": 3})
def test_orders_survive_a_leader_that_moves(kafka_cluster):
    with kafka_cluster.faults.answer("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders") as fault:
        asyncio.run(orders.place(kafka_cluster.client_config("aiokafka"), ANN))
        assert fault.count == 1
    assert len(kafka_cluster.records("orders")) == 3


@pytest.mark.kafka(topics={"orders": 3})
def test_orders_are_summed_up(kafka_cluster):
    kafka_cluster.produce("orders", *[("ann", json.dumps(each)) for each in ANN])
    settings = kafka_cluster.client_config("aiokafka", group="sums")
    assert asyncio.run(orders.sums(settings, 3)) == {"ann": 6}
