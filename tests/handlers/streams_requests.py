"""Short forms of the requests of streams groups, over a connection to a whole broker."""

from __future__ import annotations

from pykafkad.wire import messages
from tests.handlers.group_member import MEMBER, GroupMember

OTHER = "22222222-2222-2222-2222-222222222222"
Request = messages.StreamsGroupHeartbeatRequest


def info(name, partitions=0, replication_factor=0, **configs):
    """An internal topic of a topology. Underscores in configs stand for dots."""
    rows = [Request.KeyValue(key=key.replace("_", "."), value=value) for key, value in configs.items()]
    return Request.TopicInfo(
        name=name, partitions=partitions, replication_factor=replication_factor, topic_configs=rows
    )


def subtopology(number=0, *sources, **fields):
    return Request.Subtopology(subtopology_id=str(number), source_topics=list(sources), **fields)


def topology(*subtopologies, epoch=0):
    return Request.Topology(epoch=epoch, subtopologies=list(subtopologies))


def one_topic(*names):
    """A topology of one subtopology that reads topics."""
    return topology(subtopology(0, *names))


def stored(changelog, **fields):
    """A topology that reads `t` and has a store."""
    return topology(subtopology(0, "t", state_changelog_topics=[info(changelog, **fields)]))


class Streams(GroupMember):
    """A member of the streams group `g`, and a topic `t` that begins with the group."""

    def __init__(self, world, member=MEMBER, group="g", made=None, partitions=2):
        super().__init__(world, member, group)
        self.topology = made or one_topic("t")
        self.active = []
        self.standby = []
        if "t" not in world.broker.image.topics:
            world.create_topic("t", partitions)

    def fields(self, **fields):
        known = {
            "group_id": self.group,
            "member_id": self.member,
            "member_epoch": self.epoch,
            "active_tasks": self.active,
            "standby_tasks": self.standby,
            "warmup_tasks": [],
        }
        if self.epoch == 0:
            known |= {"rebalance_timeout_ms": 60_000, "topology": self.topology, "process_id": f"p-{self.member}"}
        return {**known, **fields}

    def heartbeat(self, **fields):
        answer = self.peer.ask(Request(**self.fields(**fields)), 0)
        if not answer.error_code and answer.member_epoch >= 0:
            self.epoch = answer.member_epoch
            if answer.active_tasks is not None:
                self.active, self.standby = (
                    [Request.TaskIds(subtopology_id=row.subtopology_id, partitions=row.partitions) for row in rows]
                    for rows in (answer.active_tasks, answer.standby_tasks)
                )
        return answer

    def tasks(self):
        """The active tasks as text."""
        return sorted(f"{row.subtopology_id}_{number}" for row in self.active for number in row.partitions)

    def join(self):
        """Send heartbeats until there are tasks."""
        self.find()
        for _ in range(20):
            assert self.heartbeat().error_code == 0
            if self.active:
                return self
            self.world.advance(1)
        raise AssertionError("nothing is assigned")


def statuses(answer):
    """Code to detail."""
    return {status.status_code: status.status_detail for status in answer.status or ()}
