"""Groups of every kind as one description, and what keeps a rebalance going."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad.cli import client
from pykafkad.cli.group_descriptions import Description, describe, waiting_for

PERSON = {"client_id": "c", "client_host": "/h", "rack_id": None}


def topics(**partitions: list[int]) -> dict[str, Any]:
    return {"topic_partitions": [{"topic_name": name, "partitions": partitions[name]} for name in partitions]}


def tasks(**active: list[int]) -> dict[str, Any]:
    rows = [{"subtopology_id": name.strip("_"), "partitions": active[name]} for name in active]
    return {"active_tasks": rows, "standby_tasks": [], "warmup_tasks": []}


def answers(monkeypatch: pytest.MonkeyPatch, **by_api: dict[str, Any]) -> Any:
    """An admin client of a broker with one group."""
    classic = by_api.get("DescribeGroups", {"group_state": "Dead", "members": []})
    monkeypatch.setattr(client, "describe_group", lambda admin, name: classic)
    monkeypatch.setattr(client, "describe_newer_group", lambda admin, api, name: by_api.get(api))
    known = {"source": 2, "repartition": 3}
    row = lambda name: {  # noqa: E731
        "name": name,
        "error_code": 0 if name in known else 3,
        "partitions": [{}] * known.get(name, 0),
    }
    return SimpleNamespace(describe_topics=lambda names: [row(name) for name in names])


def newer(members: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    return {
        "group_id": "g",
        "group_state": "Stable",
        "group_epoch": 5,
        "assignment_epoch": 5,
        "members": members,
    } | fields


def test_a_classic_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its members have topics if they speak the consumer protocol."""
    members = [
        {
            "member_id": "m",
            "member_assignment": {"assigned_partitions": [{"topic": "t", "partitions": [1, 0]}]},
            **PERSON,
        },
        {"member_id": "n", "member_assignment": b"x", **PERSON},
    ]
    group = describe(answers(monkeypatch, DescribeGroups={"group_state": "Stable", "members": members}), "g")
    assert (group.kind, group.state, group.epoch) == ("classic", "Stable", None)
    assert [(each.id, each.places, each.target) for each in group.members] == [
        ("m", ["t-0", "t-1"], None),
        ("n", [], None),
    ]
    assert list(waiting_for(group)) == []


def test_a_consumer_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says which member has to give up what, and which one waits for it."""
    members = [
        {
            "member_id": "m",
            "member_epoch": 4,
            "assignment": topics(t=[0, 1]),
            "target_assignment": topics(t=[0]),
            **PERSON,
        },
        {"member_id": "n", "member_epoch": 5, "assignment": topics(), "target_assignment": topics(t=[1]), **PERSON},
        {"member_id": "o", "member_epoch": 4, "assignment": topics(), "target_assignment": topics(), **PERSON},
    ]
    found = newer(members, assignor_name="uniform")
    group = describe(answers(monkeypatch, ConsumerGroupDescribe=found), "g")
    assert (group.kind, group.detail) == ("consumer", "assigned by uniform")
    assert list(waiting_for(group)) == ["m has to give up t-1", "n waits for t-1", "o is still in epoch 4"]


def test_a_share_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its members have no target."""
    members = [{"member_id": "m", "member_epoch": 5, "assignment": topics(t=[0]), **PERSON}]
    group = describe(answers(monkeypatch, ShareGroupDescribe=newer(members, assignor_name="simple")), "g")
    assert (group.kind, [each.places for each in group.members]) == ("share", [["t-0"]])
    assert list(waiting_for(group)) == []


def test_a_streams_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks read the partition of their number in each topic of their subtopology that has so many."""
    standby = tasks(_0=[1]) | {"standby_tasks": [{"subtopology_id": "1", "partitions": [2]}]}
    members = [{"member_id": "m", "member_epoch": 5, "assignment": standby, "target_assignment": standby, **PERSON}]
    topology = {
        "epoch": 3,
        "subtopologies": [
            {"subtopology_id": "0", "source_topics": ["source", "none"], "repartition_source_topics": []},
            {"subtopology_id": "1", "source_topics": [], "repartition_source_topics": [{"name": "repartition"}]},
        ],
    }
    group = describe(answers(monkeypatch, StreamsGroupDescribe=newer(members, topology=topology, group_epoch=6)), "g")
    assert (group.kind, group.detail) == ("streams", "2 subtopologies (epoch 3), without none")
    (member,) = group.members
    assert (member.places, member.reads) == (["0_1", "standby:1_2"], {"source": [1], "none": []})
    (sentence,) = waiting_for(group)
    assert sentence.endswith("since epoch 5; the assignment of epoch 6 is not made yet")


def test_an_unknown_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is described as a dead classic group."""
    assert describe(answers(monkeypatch), "g") == Description("g", "classic", "Dead", "", [], None, None)
