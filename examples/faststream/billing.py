"""The program that is tested: it reads orders, and writes an invoice for each customer's order."""

from __future__ import annotations

import logging
from typing import Any

from faststream.kafka import KafkaBroker
from pydantic import BaseModel


class Order(BaseModel):
    customer: str
    amount: int


class Invoice(BaseModel):
    customer: str
    total: int


def application(settings: dict[str, Any], price: int) -> KafkaBroker:
    broker = KafkaBroker(**settings, logger=logging.getLogger("billing"))
    invoices = broker.publisher("invoices")

    @broker.subscriber("orders", group_id="billing", auto_offset_reset="earliest")
    async def bill(order: Order) -> None:
        await invoices.publish(
            Invoice(customer=order.customer, total=order.amount * price), key=order.customer.encode()
        )

    return broker
