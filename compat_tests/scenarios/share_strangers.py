"""Requests about share groups (KIP-932) that are not there. Kafka 4.1 refuses them, as its share groups are off."""

from __future__ import annotations

from compat_tests.scenarios.exchange import Exchange, part, versions
from compat_tests.scenarios.registry import scenario

MEMBER = "AAAAAAAAAAAAAAAAAAAAAw"


@scenario
def requests_about_no_share_group(broker: Exchange) -> None:
    """Sessions, members, groups and offsets that nobody has made each have their own error."""
    group = broker.name("group")
    broker.coordinator(group)
    for api in ("ShareFetch", "ShareAcknowledge"):
        for version in versions(api):
            for epoch in (5, -1):
                fields = {"group_id": group, "member_id": MEMBER, "share_session_epoch": epoch, "topics": []}
                broker.ask(api, version, note=str(epoch), **fields)
    for version in versions("ShareGroupHeartbeat"):
        for epoch in (5, -1):
            broker.ask("ShareGroupHeartbeat", version, note=str(epoch), group_id=group, member_id=MEMBER,
                       member_epoch=epoch)  # fmt: skip
    for version in versions("ShareGroupDescribe"):
        broker.ask("ShareGroupDescribe", version, group_ids=[group])
    for version in versions("DeleteShareGroupOffsets"):
        topic = part("DeleteShareGroupOffsets", "DeleteShareGroupOffsetsRequestTopic", topic_name="nothing")
        broker.ask("DeleteShareGroupOffsets", version, group_id=group, topics=[topic])
    for version in versions("AlterShareGroupOffsets"):
        broker.ask("AlterShareGroupOffsets", version, note="nothing", group_id="", topics=[])
