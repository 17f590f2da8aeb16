"""ListGroups: filters and permissions."""

from __future__ import annotations

import pytest

from pykafkad.handlers.list_groups import handle
from pykafkad.wire import messages
from tests.handlers.group_surroundings import Context


def context():
    ctx = Context()
    ctx.world.stable(group="stable")
    ctx.world.commit({("t", 0): 1}, group="simple")
    return ctx


def names(ctx, version, **filters):
    return [row.group_id for row in ctx.call(handle, version, messages.ListGroupsRequest(**filters)).groups]


@pytest.mark.parametrize("version", range(6))
def test_every_version_lists_all_groups(version):
    answer = context().call(handle, version, messages.ListGroupsRequest())
    assert [(row.group_id, row.protocol_type, row.group_state, row.group_type) for row in answer.groups] == [
        ("stable", "consumer", "Stable" if version >= 4 else "", "classic" if version >= 5 else ""),
        ("simple", "", "Empty" if version >= 4 else "", "classic" if version >= 5 else ""),
    ]


def test_filters_ignore_case():
    ctx = context()
    assert names(ctx, 4, states_filter=["sTABLE "]) == ["stable"]
    assert names(ctx, 5, states_filter=["Stable", "Empty"], types_filter=["Classic"]) == ["stable", "simple"]
    assert names(ctx, 5, states_filter=["Dead"]) == []


@pytest.mark.parametrize("group_type", ["consumer", "no-such-type"])
def test_types_without_groups_match_nothing(group_type):
    assert names(context(), 5, types_filter=[group_type]) == []


def test_permission_on_the_group_suffices():
    ctx = context()
    ctx.denied.add(("Describe", "Group", "simple"))
    assert names(ctx, 5) == ["stable", "simple"]
    ctx.denied.add(("Describe", "Cluster", "kafka-cluster"))
    assert names(ctx, 5) == ["stable"]
