"""What is measured, and the floors: the one table of the bench.

The names are stable; figures of different days are compared by them. A floor is a ratio pykafkad / Kafka of the
medians of one run, or an absolute value of pykafkad.
"""

from __future__ import annotations

from collections import namedtuple

from .client_loads import ConfluentLoad, JavaPerfLoad, SparkLoad
from .cluster_loads import ClusterProduceLoad, ProcessesLoad
from .describe_loads import DescribeConfigsLoad, DescribePartitionsLoad, ValidateTopicsLoad
from .failover_loads import FailoverLoad, ManyFailoversLoad, ShutdownLoad
from .group_loads import FreshMemberLoad, HeartbeatLoad, SettleLoad, ShareFetchLoad
from .life_loads import (
    IdleConnectionsLoad,
    IdleMemoryLoad,
    InProcessLoad,
    PartitionsLoad,
    SeveralBrokersLoad,
    StartLoad,
)
from .request_loads import FetchLoad, ProduceBesideLoad, ProduceLoad, SyncedProduceLoad
from .security_loads import AclsLoad, HandshakeLoad, QuotasLoad, ScramLoad, TlsFetchLoad, TlsProduceLoad
from .storage_loads import CompactionLoad, RecoveryLoad
from .stranger_loads import StrangersLoad
from .transaction_loads import CommittedFetchLoad, TransactionLoad

Case = namedtuple("Case", "name what load floors")
Case.__doc__ = "One row: its name, a sentence, the load that measures it, and the floors that it must reach."

Floor = namedtuple("Floor", "figure relation limit of")
Floor.__doc__ = """`figure` must stand in `relation` ('>=' or '<=') to `limit`; `of` says of what: 'ratio' (pykafkad /
Kafka) or 'value' (pykafkad's own)."""

KB, MB = 1024, 1024 * 1024


def at_least(figure, limit):
    """pykafkad reaches at least `limit` times Kafka's figure."""
    return Floor(figure, ">=", limit, "ratio")


def at_most(figure, limit):
    """pykafkad needs at most `limit` times Kafka's figure."""
    return Floor(figure, "<=", limit, "ratio")


def no_more_than(figure, limit):
    """pykafkad's own figure is at most `limit`."""
    return Floor(figure, "<=", limit, "value")


def no_less_than(figure, limit):
    """pykafkad's own figure is at least `limit`."""
    return Floor(figure, ">=", limit, "value")


CASES = (
    Case(
        "produce-1rec-c50",
        "Produce, one 100-byte record, 50 connections",
        ProduceLoad(None, connections=50),
        (at_least("requests_per_s", 1.6), at_most("cpu_us_per_request", 0.5)),
    ),
    Case(
        "produce-1rec-c6d5",
        "Produce, one 100-byte record, 6 connections 5 deep",
        ProduceLoad(None, connections=6, depth=5),
        (at_least("requests_per_s", 2.2),),
    ),
    Case(
        "produce-1KB-c6d5",
        "Produce, 1 KB batches, 6 connections 5 deep",
        ProduceLoad(KB, connections=6, depth=5),
        (at_least("requests_per_s", 2.0),),
    ),
    Case(
        "produce-1rec-c1",
        "Produce, one 100-byte record, one connection",
        ProduceLoad(None, connections=1),
        (at_most("p50_us", 0.8),),
    ),
    Case(
        "produce-16KB",
        "Produce, 16 KB batches, 6 connections 5 deep",
        ProduceLoad(16 * KB, connections=6, depth=5),
        (at_least("mb_per_s", 1.0), at_most("cpu_ms_per_mb", 0.7)),
    ),
    Case(
        "produce-64KB",
        "Produce, 64 KB batches, 6 connections 5 deep",
        ProduceLoad(64 * KB, connections=6, depth=5),
        (at_least("mb_per_s", 1.15),),
    ),
    Case(
        "produce-1MB",
        "Produce, 1 MB batches, 6 connections 5 deep",
        ProduceLoad(MB, connections=6, depth=5),
        (at_least("mb_per_s", 1.15),),
    ),
    Case(
        "paced-1000",
        "Produce, one 100-byte record, 1 000 a second on one connection",
        ProduceLoad(None, connections=1, depth=64, rate=1000.0),
        (),
    ),
    Case(
        "paced-beside-large",
        "Produce, one 100-byte record, 500 a second on one connection, beside 80 batches of 1 MB a second",
        ProduceBesideLoad(rate=500.0, large_bytes=MB, large_connections=4, large_rate=80.0),
        (at_most("p99_us", 1.0),),
    ),
    Case(
        "produce-synced-c50",
        "Produce, one 100-byte record, synced before it is acknowledged, 50 connections",
        SyncedProduceLoad(connections=50),
        (no_less_than("times_one_sync", 5.0),),
    ),
    Case(
        "fetch-4KB",
        "Fetch of 4 KB, 6 connections, cached log",
        FetchLoad(4 * KB, batch_bytes=KB),
        (at_least("mb_per_s", 1.5), at_most("cpu_ms_per_mb", 0.6)),
    ),
    Case(
        "fetch-16KB",
        "Fetch of 16 KB, 6 connections, cached log",
        FetchLoad(16 * KB, batch_bytes=4 * KB),
        (at_least("mb_per_s", 1.5), at_most("cpu_ms_per_mb", 0.6)),
    ),
    Case(
        "fetch-64KB",
        "Fetch of 64 KB, 6 connections, cached log",
        FetchLoad(64 * KB, batch_bytes=16 * KB),
        (at_least("mb_per_s", 1.0), at_most("cpu_ms_per_mb", 0.6)),
    ),
    Case(
        "fetch-1MB",
        "Fetch of 1 MB, 6 connections, cached log",
        FetchLoad(MB, batch_bytes=16 * KB),
        (at_least("mb_per_s", 1.0), at_most("cpu_ms_per_mb", 0.6)),
    ),
    Case(
        "tls-produce-16KB",
        "Produce by TLS, 16 KB batches, 6 connections 5 deep",
        TlsProduceLoad(16 * KB, connections=6, depth=5),
        (at_least("mb_per_s", 1.0),),
    ),
    Case(
        "tls-fetch-16KB",
        "Fetch by TLS of 16 KB, 6 connections, cached log",
        TlsFetchLoad(16 * KB, batch_bytes=4 * KB),
        (at_least("mb_per_s", 1.0),),
    ),
    Case(
        "tls-handshakes",
        "TLS handshakes (RSA 2048, no session taken up again) up to the answer to ApiVersions, 8 connections at a time",
        HandshakeLoad(),
        (at_least("logins_per_s", 1.0), at_most("cpu_us_per_login", 0.7)),
    ),
    Case(
        "scram-256-logins",
        "Logins by SCRAM-SHA-256, 8 connections at a time",
        ScramLoad("SCRAM-SHA-256"),
        (at_least("logins_per_s", 1.0),),
    ),
    Case(
        "scram-512-logins",
        "Logins by SCRAM-SHA-512, 8 connections at a time",
        ScramLoad("SCRAM-SHA-512"),
        (at_least("logins_per_s", 1.0),),
    ),
    Case(
        "acls-1000",
        "produce-1rec-c50 with an authorizer and 1 000 ACLs",
        AclsLoad(),
        (no_less_than("beside_without", 0.95),),
    ),
    Case(
        "quotas",
        "produce-1rec-c50 with quotas that never throttle",
        QuotasLoad(),
        (no_less_than("beside_without", 0.97),),
    ),
    Case(
        "strangers-sasl",
        "Produce, one 100-byte record, 1 000 a second on one connection, beside 1 000 that began a login by SASL",
        StrangersLoad("SASL_PLAINTEXT", rate=1000.0, count=1000),
        (no_more_than("beside_strangers_p99", 1.2), no_more_than("strangers_mb", 20)),
    ),
    Case(
        "strangers-tls",
        "Produce, one 100-byte record, 1 000 a second on one connection, beside 1 000 that began a TLS handshake",
        StrangersLoad("SSL", rate=1000.0, count=1000),
        (no_more_than("beside_strangers_p99", 1.2), no_more_than("strangers_mb", 20)),
    ),
    Case(
        "transactions",
        "Transactions of 100 records, one producer, one after the other",
        TransactionLoad(),
        (at_least("transactions_per_s", 1.5), at_most("p99_us", 0.6)),
    ),
    Case(
        "fetch-committed-16KB",
        "Fetch of 16 KB with read_committed over transactions, every tenth aborted, 6 connections, cached log",
        CommittedFetchLoad(16 * KB, batch_bytes=4 * KB),
        (no_less_than("committed_ratio", 0.95),),
    ),
    Case(
        "group-fresh-member",
        "First member of a new group (KIP-848), from its first heartbeat to its first record",
        FreshMemberLoad(),
        (at_most("first_record_ms", 0.5),),
    ),
    Case(
        "group-settle-consumer",
        "100 members join a group (KIP-848) until every partition of 100 has its owner",
        SettleLoad("consumer", 100),
        (at_most("settle_ms", 1.0),),
    ),
    Case(
        "group-settle-classic",
        "100 members join a classic group until every partition of 100 has its owner",
        SettleLoad("classic", 100),
        (at_most("settle_ms", 1.0),),
    ),
    Case(
        "group-heartbeats",
        "Heartbeats of members of 1 000 groups (KIP-848), 20 connections",
        HeartbeatLoad(1000),
        (at_most("cpu_us_per_request", 0.5),),
    ),
    Case(
        "share-fetch",
        "Share consumer: fetch and acknowledge, 500 records at a time",
        ShareFetchLoad(),
        (at_least("records_per_s", 1.0),),
    ),
    Case("start", "Start of a formatted broker to its first answer", StartLoad(), (no_more_than("start_ms", 100),)),
    Case(
        "start-embedded",
        "Constructor to serving in a process that has imported it, data in memory",
        InProcessLoad("start_ms", "embedded_start", 20),
        (no_more_than("start_ms", 5),),
    ),
    Case(
        "start-3-brokers",
        "Start of three brokers in one process, to the readiness line, and their memory 2 s later",
        SeveralBrokersLoad(3),
        (no_more_than("start_ms", 150), no_more_than("rss_mb", 45)),
    ),
    Case(
        "replicated-1rec-c50",
        "Three brokers (pykafkad: one process), 3 replicas, acks=all: one 100-byte record, 50 connections",
        ClusterProduceLoad(None, connections=50),
        (at_least("requests_per_s", 1.0), at_most("cpu_us_per_request", 0.5)),
    ),
    Case(
        "replicated-1rec-c1",
        "Three brokers (pykafkad: one process), 3 replicas, acks=all: one 100-byte record, one connection",
        ClusterProduceLoad(None, connections=1),
        (at_most("p50_us", 0.8),),
    ),
    Case(
        "replicated-16KB",
        "Three brokers (pykafkad: one process), 3 replicas, acks=all: 16 KB batches, 6 connections 5 deep",
        ClusterProduceLoad(16 * KB, connections=6, depth=5),
        (at_least("mb_per_s", 0.8),),
    ),
    Case(
        "replicated-1rec-c50-processes",
        "Three brokers (pykafkad: each in its process), 3 replicas, acks=all: one 100-byte record, 50 connections",
        ClusterProduceLoad(None, connections=50, processes=True),
        (at_least("requests_per_s", 1.0), at_most("cpu_us_per_request", 0.5)),
    ),
    Case(
        "replicated-1rec-c1-processes",
        "Three brokers (pykafkad: each in its process), 3 replicas, acks=all: one 100-byte record, one connection",
        ClusterProduceLoad(None, connections=1, processes=True),
        (at_most("p50_us", 0.8),),
    ),
    Case(
        "replicated-16KB-processes",
        "Three brokers (pykafkad: each in its process), 3 replicas, acks=all: 16 KB batches, 6 connections 5 deep",
        ClusterProduceLoad(16 * KB, connections=6, depth=5, processes=True),
        (at_least("mb_per_s", 0.8),),
    ),
    Case(
        "two-processes",
        "Factor 1, one 100-byte record, 50 connections: two brokers in processes of their own beside one",
        ProcessesLoad(),
        (no_less_than("processes_ratio", 1.6),),
    ),
    Case(
        "failover",
        "Three brokers, each in its process: from the SIGKILL of a leader to the first record acknowledged elsewhere",
        FailoverLoad(),
        (at_most("failover_ms", 0.5),),
    ),
    Case(
        "failover-10000",
        "Three brokers, each in its process, 10 000 partitions: from the SIGKILL of one until others lead all of them",
        ManyFailoversLoad(10_000),
        (at_most("failover_ms", 1.0),),
    ),
    Case(
        "failover-turns",
        "Three brokers in one process, 6 000 partitions: processor time of the loop's longest turn when one is killed",
        InProcessLoad("turn_ms", "failover_turns", 6000),
        (no_more_than("turn_ms", 50),),
    ),
    Case(
        "controlled-shutdown",
        "Three brokers, each in its process: one stops while confluent-kafka produces to all partitions",
        ShutdownLoad(),
        (no_more_than("client_errors", 0),),
    ),
    Case(
        "checkpoint-15000",
        "Checkpoint of 15 000 partitions: processor time of the loop's longest turn",
        InProcessLoad("turn_ms", "checkpoint_turns", 15_000),
        (no_more_than("turn_ms", 20),),
    ),
    Case("idle-memory", "Resident memory 2 s after the start", IdleMemoryLoad(), (no_more_than("rss_mb", 30),)),
    Case(
        "idle-10000",
        "10 000 idle connections beside produce-1rec-c50",
        IdleConnectionsLoad(10_000),
        (no_more_than("idle_delta_mb", 15), no_more_than("beside_idle_cpu", 1.05)),
    ),
    Case(
        "partitions-10000",
        "Start with 10 000 partitions after a clean stop, to the first acknowledged record",
        PartitionsLoad(topics=10, partitions_each=1000),
        (no_more_than("first_ack_ms", 2000),),
    ),
    Case(
        "describe-settings",
        "DescribeConfigs of 1 000 settings (a broker's and 24 topics'), with synonyms and documentation",
        DescribeConfigsLoad(topics=24),
        (at_most("answer_ms", 2.0),),
    ),
    Case(
        "describe-partitions",
        "Metadata of 10 000 partitions; DescribeTopicPartitions of them, 2 000 a page",
        DescribePartitionsLoad(topics=10, partitions_each=1000),
        (at_most("answer_ms", 2.0), at_most("page_ms", 2.0)),
    ),
    Case(
        "validate-topics",
        "CreateTopics of 1 000 topics, validated only",
        ValidateTopicsLoad(topics=1000),
        (at_most("answer_ms", 2.0),),
    ),
    Case(
        "recovery-1GB",
        "Recovery of an unclean segment of 1 GB, batches of 16 KB",
        RecoveryLoad(segment_mb=1024, batch_bytes=16 * KB),
        (at_least("mb_per_s", 1.0),),
    ),
    Case(
        "recovery-1GB-small",
        "Recovery of an unclean segment of 1 GB, batches of 1 KB",
        RecoveryLoad(segment_mb=1024, batch_bytes=KB),
        (at_least("mb_per_s", 1.0),),
    ),
    Case(
        "compaction",
        "Compaction of 256 MB in which every key stands five times, 1 KB records in batches of 16 KB",
        CompactionLoad(256, value_bytes=KB),
        (at_least("mb_per_s", 1.0),),
    ),
    Case(
        "spark-small-partitions",
        "Spark batch count() of 100 small partitions, default options",
        SparkLoad(),
        (at_most("seconds", 0.25),),
    ),
    Case(
        "confluent-produce", "confluent-kafka producer, 1 KB records", ConfluentLoad("produce", record_bytes=1000), ()
    ),
    Case(
        "confluent-consume", "confluent-kafka consumer, 1 KB records", ConfluentLoad("consume", record_bytes=1000), ()
    ),
    Case("java-produce", "Java ProducerPerformance, 100-byte records", JavaPerfLoad("produce"), ()),
    Case("java-consume", "Java ConsumerPerformance, 100-byte records", JavaPerfLoad("consume"), ()),
)
