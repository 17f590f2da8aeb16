"""Brokers for tests, in this process or in one of their own, with what a test needs beside a client.

    with pykafkad.testing.Broker(topics={"orders": 3}) as broker:
        ...

Start reading at `broker.py`. The package knows how a test sets a broker up, looks into it, waits for it and breaks it;
it must not know any client library. The pytest plugin is `pykafkad/pytest_plugin.py`."""

from pykafkad.testing.broker import Broker
from pykafkad.testing.broker_loop import BrokerEnded
from pykafkad.testing.faults import Fault, Faults
from pykafkad.testing.groups import Group, Member
from pykafkad.testing.records import NewRecord, Record
from pykafkad.testing.tenants import Tenants
from pykafkad.testing.topics import Topic
from pykafkad.testing.unittest_mixin import KafkaMixin
from pykafkad.testing.waits import NotInTime
from pykafkad.testing.wire_client import Refused

__all__ = [
    "Broker",
    "BrokerEnded",
    "Fault",
    "Faults",
    "Group",
    "KafkaMixin",
    "Member",
    "NewRecord",
    "NotInTime",
    "Record",
    "Refused",
    "Tenants",
    "Topic",
]
