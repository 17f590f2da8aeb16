"""The voters of the metadata quorum, and the VotersRecord that names them (KIP-853)."""

from __future__ import annotations

from pykafkad.metadata.brokers import Endpoint
from pykafkad.metadata.features import KRAFT_VERSION, SUPPORTED
from pykafkad.wire import messages


class Voter:
    """One voter: its node `id`, the 16-byte `directory_id` of its metadata directory (zeros while nobody knows it), its
    endpoints, and the lowest and the highest level of kraft.version that it supports."""

    __slots__ = ("directory_id", "endpoints", "id", "levels")

    def __init__(
        self,
        voter_id: int,
        directory_id: bytes,
        endpoints: list[Endpoint],
        levels: tuple[int, int] = SUPPORTED[KRAFT_VERSION],
    ) -> None:
        self.id = voter_id
        self.directory_id = directory_id
        self.endpoints = endpoints
        self.levels = levels

    @property
    def key(self) -> tuple[int, bytes]:
        """What tells this voter from all others: an id with another directory is another voter."""
        return self.id, self.directory_id

    def __eq__(self, other: object) -> bool:
        return type(other) is Voter and _values(self) == _values(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Voter({self.id}, {self.endpoints})"


def _values(voter: Voter) -> tuple[object, ...]:
    endpoints = [(each.name, each.host, each.port) for each in voter.endpoints]
    return voter.id, voter.directory_id, endpoints, voter.levels


def majority(voters: list[Voter]) -> int:
    """The number of voters that make a majority."""
    return len(voters) // 2 + 1


def to_record(voters: list[Voter]) -> messages.VotersRecord:
    """The VotersRecord of these voters."""
    record = messages.VotersRecord
    return record(
        version=0,
        voters=[
            record.Voter(
                voter_id=voter.id,
                voter_directory_id=voter.directory_id,
                endpoints=[record.Endpoint(name=each.name, host=each.host, port=each.port) for each in voter.endpoints],
                k_raft_version_feature=record.KRaftVersionFeature(
                    min_supported_version=voter.levels[0], max_supported_version=voter.levels[1]
                ),
            )
            for voter in voters
        ],
    )


def from_records(voters: list[messages.VotersRecord.Voter]) -> list[Voter]:
    """The voters of `VotersRecord.voters`."""
    return [
        Voter(
            each.voter_id,
            each.voter_directory_id,
            [Endpoint(end.name, end.host, end.port) for end in each.endpoints],
            (each.k_raft_version_feature.min_supported_version, each.k_raft_version_feature.max_supported_version),
        )
        for each in voters
    ]
