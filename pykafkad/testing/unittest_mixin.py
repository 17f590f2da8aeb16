"""A broker for the classes of the standard `unittest`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pykafkad.testing.broker import Broker


class KafkaMixin:
    """Gives a `unittest.TestCase` a broker, `self.kafka`: one for the class, reset before each test. It stands in front
    of TestCase:

        class OrdersTest(KafkaMixin, unittest.TestCase):
            kafka_arguments = {"topics": {"orders": 3}}
    """

    kafka_arguments: ClassVar[Mapping[str, Any]] = {}
    """The keyword arguments of `Broker`."""

    kafka: ClassVar[Broker]

    @classmethod
    def setUpClass(cls) -> None:
        """Start the broker."""
        cls.kafka = Broker(**cls.kafka_arguments).start()
        getattr(cls, "addClassCleanup")(cls.kafka.close)  # noqa: B009 - a method of TestCase
        super().setUpClass()  # type: ignore[misc]

    def setUp(self) -> None:
        """Reset the broker."""
        self.kafka.reset()
        super().setUp()  # type: ignore[misc]
