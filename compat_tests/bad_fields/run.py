"""Sends every variant of every request to one broker and keeps the normalised answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from compat_tests.bad_fields.bases import BASES, Base
from compat_tests.bad_fields.cluster import Cluster
from compat_tests.bad_fields.differences import NEVER_ANSWERED, never_answered
from compat_tests.bad_fields.encoding import body, complete
from compat_tests.bad_fields.variants import Variant, variants
from compat_tests.scenarios import normalise
from compat_tests.scenarios.exchange import CLIENT_ID, FLEXIBLE_FROM, Connection, Exchange
from pykafkad.handlers import table
from pykafkad.wire import frames, messages

# No request here waits longer than this for its own reasons; a later answer counts as no answer.
PATIENCE_SECONDS = 100.0
SHORT_SECONDS = 0.3
UNANSWERED = "no answer"


class Answer(NamedTuple):
    """One variant and its outcome: a plain answer, a closed connection, or no answer in time."""

    api: str
    version: int
    path: str
    what: str
    answer: Any


def sampled(versions: range, cls: type) -> list[int]:
    """The lowest and the highest version, the first flexible one, and those in which a field appears or disappears."""
    schema = messages.schema(cls)
    chosen = {versions[0], versions[-1]}
    if schema.flexible_from is not None:
        chosen.add(schema.flexible_from)
    for struct in (schema.root, *schema.structs.values()):
        for field in struct.fields:
            chosen |= {field.first, field.last + 1}
    return sorted(chosen & set(versions))


def bases_missing() -> list[str]:
    """The APIs that have no base request."""
    return sorted({row.name for row in table.ROWS} - {api for api, _ in BASES})


def versions_asked(row: table.Api, whole: bool) -> list[int]:
    """The versions of an API to be asked: all of them, or a sample."""
    versions = range(row.min_version, row.max_version + 1)
    return list(versions) if whole else sampled(versions, messages.request_class(row.key))


def left_out(api: str, variant: Variant) -> bool:
    """Whether a variant is skipped.

    Skipped are timeouts whose outcome depends on the machine's speed, variants that take all of Kafka's memory, and all
    but one of those that make its controller resign.
    """
    if variant.path == "timeout_ms" and variant.what in ("1", "2", "3", "77"):
        return api not in ("Produce", "ListOffsets")
    if api == "CreatePartitions" and (variant.path, variant.what) == ("topics.count", "2147483647"):
        return True
    return variant.path.endswith("config_operation") and variant.what in ("-128", "-2", "-1", "127")


class Run:
    """One broker's run: asks everything in the same order and with the same names as on any other broker."""

    def __init__(
        self,
        bootstrap: str,
        *,
        whole: bool,
        apis: frozenset[str] = frozenset(),
        bases: tuple[tuple[str, Base], ...] = BASES,
        cluster: type[Cluster] = Cluster,
        patience_seconds: float = PATIENCE_SECONDS,
        unanswered: tuple[tuple[str, str, str], ...] = NEVER_ANSWERED,
    ) -> None:
        self._exchange = Exchange(bootstrap, "bad-fields")
        # The same on every broker, because the group's name decides which partition holds its offsets.
        self._exchange.prefix = "bad-fields"
        self._cluster = cluster(self._exchange)
        # Ids that the preparation has seen are numbered in every answer.
        self._known = normalise.Run(int(bootstrap.rsplit(":", 1)[1]), self._exchange.prefix, {})
        for step in self._exchange.steps:
            normalise.one_normalised(step.answer, step.version, self._known)
        self._connection = self._connect()
        self._whole = whole
        self._apis = apis
        self._bases = bases
        self._patience_seconds = patience_seconds
        self._unanswered = unanswered

    def _connect(self) -> Connection:
        return self._exchange.connect()

    def close(self) -> None:
        """Close its connections."""
        self._exchange.close()

    def answers(self) -> Iterator[Answer]:
        """Ask everything, in order."""
        rows = {row.name: row for row in table.ROWS}
        for api, base in self._bases:
            row = rows[api]
            if self._apis and api not in self._apis:
                continue
            cls = messages.request_class(row.key)
            fields = messages.schema(cls).root.fields
            for version in versions_asked(row, self._whole):
                self._prepare(api)
                make = lambda: complete(base(self._cluster, version), fields, version)  # noqa: B023, E731 - called in this turn
                # Every variant is built from a new base, because some requests use up what they name.
                for variant in list(variants(cls, version, make())):
                    if not left_out(api, variant):
                        plain = variant.applied(make())
                        yield self._ask(row, version, variant.path, variant.what, body(cls, version, plain))
                        self._settle(api, version, variant)
                        if api == "ShareFetch":
                            # Kafka keeps the session, and its records, when it closes the connection itself.
                            final = {**plain, "share_session_epoch": -1, "topics": [], "forgotten_topics_data": []}
                            self._ask(row, version, "", "the session's end", body(cls, version, final))
                if messages.schema(cls).flexible(version):
                    yield self._ask(
                        row, version, "", "a tag that nobody knows", body(cls, version, make(), extra_tag=True)
                    )
                yield self._ask(row, version, "", "a byte too many", body(cls, version, make()) + b"\0")

    def _prepare(self, api: str) -> None:
        if api in ("FindCoordinator", "InitProducerId", "AddPartitionsToTxn"):
            self._cluster.await_producer_ids()
        if api in ("OffsetDelete", "DeleteGroups"):
            self._cluster.await_end_of_sessions()

    def _settle(self, api: str, version: int, variant: Variant) -> None:
        """Wait for the lasting effects of a request, so that an allowed difference is not seen in later answers."""
        if (
            api == "Metadata"
            and (version < 4 or variant.path == "allow_auto_topic_creation")
            and variant.what != "as it is"
        ):
            self._cluster.create_made_up()
            self._cluster.delete_made_up()
        if api == "CreateTopics" and (variant.what in ("unknown", "249 letters") or "bad" in variant.what):
            self._cluster.delete_made_up()
        if api == "Produce" and "twice" in variant.what:
            self._cluster.renew_written()

    def _ask(self, row: table.Api, version: int, path: str, what: str, data: bytes) -> Answer:
        connection = self._connection
        is_unanswered = never_answered(row.name, path, what, self._unanswered)
        connection.socket.settimeout(SHORT_SECONDS if is_unanswered else self._patience_seconds)
        tagged = version >= FLEXIBLE_FROM.get(row.key, 32767)
        chunks = [frames.start_request(row.key, version, 1, CLIENT_ID, tagged), data]
        connection.expect(row.name, version, 1)
        try:
            whole = b"".join(chunks)
            connection.socket.sendall((len(whole) - 4).to_bytes(4, "big") + whole[4:])
            answer = connection.receive()
        except TimeoutError:
            answer = UNANSWERED
        except ConnectionError:
            answer = "connection closed"
        if isinstance(answer, str):
            connection.close()
            self._connection = self._connect()
        return Answer(row.name, version, path, what, self._plain(answer, version))

    def _plain(self, answer: Any, version: int) -> Any:
        return normalise.one_normalised(answer, version, self._known._replace(numbers=dict(self._known.numbers)))
