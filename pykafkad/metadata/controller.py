"""The controller: it turns every request that changes the cluster's metadata into records and a reply.

A pure state machine: `step` takes an event of `events.py` and returns effects. All its state is in the image, so the
shell appends and applies the records of a step before it begins the next one.

An event with many rows is a generator (`begin`), so that the shell can spread the work over turns of the loop. No other
event may begin before its end.

The effects are `Append(("__cluster_metadata", 0), records)` and then `Reply`, which the shell sends when the records
are committed. A request that changes nothing has only the reply."""

from __future__ import annotations

from types import GeneratorType

from pykafkad import errors
from pykafkad.effects import Append, Reply
from pykafkad.errors import ConfigError, KafkaError
from pykafkad.metadata import creation, events, features, record_codec, registrations
from pykafkad.metadata.configs import OPERATION_NAMES, Alteration, minimum_for_elr
from pykafkad.metadata.image import Image
from pykafkad.metadata.topics import TOPICS_NAMED
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from random import Random
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.effects import StoredRecord
    from pykafkad.metadata.delegation_tokens import TokensByHmac
    from pykafkad.metadata.heartbeats import Heartbeats
    from pykafkad.metadata.topic_askers import Asker

    Effects = list[object]
    Steps = Generator[None, None, Effects]

PRODUCER_ID_BLOCK_SIZE = 1000
MAX_PRODUCER_ID = 2**63 - 1


class Controller:
    """The controller of node `node_id`. `settings` are the broker's, for defaults. `random` places replicas and makes
    ids."""

    __slots__ = ("_tokens", "cluster_id", "heartbeats", "image", "local_brokers", "node_id", "random", "settings")

    def __init__(self, node_id: int, cluster_id: str, settings: Settings, image: Image, random: Random) -> None:
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.settings = settings
        self.image = image
        self.random = random
        self._tokens: TokensByHmac | None = None
        self.heartbeats: Heartbeats | None = None
        """The sessions of brokers in other processes; None where there are none."""
        self.local_brokers: set[int] = set()
        """The ids of brokers in this process, which live as long as the controller does."""

    def step(self, event: object, now: float, now_ms: int) -> Effects:
        """The effects of one event of `events.py`."""
        result: Any = self.begin(event)
        while type(result) is GeneratorType:
            try:
                next(result)
            except StopIteration as stop:
                result = stop.value
        effects: Effects = result
        return effects

    def begin(self, event: object) -> Effects | Steps:
        """The effects of one event, or a generator that yields between rows and returns the effects. No other event may
        begin before its end."""
        return _STEPS[type(event)](self, event)

    # ---- the cluster

    def _activate(self, event: events.Activate) -> Effects:
        """The first records of a new leader.

        They are the features, in an empty cluster, or the end of an interrupted transaction, and then the registration
        of this controller. Raises `ConfigError` when the cluster has features that this release does not support.
        """
        image = self.image
        is_new = features.METADATA_VERSION not in image.features
        levels = features.levels(event.bootstrap) if is_new else image.features
        unsupported = features.unsupported(levels, self.settings)
        if unsupported:
            who = f"Kafka {self.settings.pykafkad_act_as}, as which it would act,"
            who = "this release of pykafkad" if self.settings.release is None else who
            raise ConfigError(
                f"the metadata log was written by a cluster that runs {', '.join(unsupported)}, which {who} "
                "does not have: change the features with kafka-features on a Kafka 4.3, or start on another "
                "directory"
            )
        records: list[StoredRecord] = []
        if image.transaction is not None:
            records.append(record_codec.record(messages.AbortTransactionRecord(reason="Controller failover")))
        if is_new:
            records += self._bootstrap(event.bootstrap, levels)
        records.append(record_codec.record(registrations.controller_registration(self.node_id, self.settings, event)))
        return [Append(record_codec.LOG, records)]

    def _bootstrap(self, bootstrap: list[StoredRecord], levels: dict[str, int]) -> list[StoredRecord]:
        """The records of an empty cluster, as one transaction."""
        records = [record_codec.record(messages.BeginTransactionRecord(name="Bootstrap records")), *bootstrap]
        if levels.get(features.ELIGIBLE_LEADER_REPLICAS):
            records += minimum_for_elr(self.image, self.settings)
        records.append(record_codec.record(messages.EndTransactionRecord()))
        return records

    def _register_broker(self, event: events.RegisterBroker) -> Effects:
        self.local_brokers.add(event.broker_id)
        if self.heartbeats is not None:
            self.heartbeats.forget(event.broker_id)
        return [*registrations.register(self.image, self.settings, event)]

    def _broker_registration(self, event: events.BrokerRegistration) -> Effects:
        from pykafkad.metadata import broker_lifecycle

        return broker_lifecycle.register(self, event)

    def _broker_heartbeat(self, event: events.BrokerHeartbeat) -> Effects | Steps:
        from pykafkad.metadata import broker_lifecycle

        return broker_lifecycle.heartbeat(self, event)

    def _begin_sessions(self, event: events.BeginSessions) -> Effects:
        from pykafkad.metadata import broker_lifecycle

        return broker_lifecycle.begin_sessions(self, event.now)

    def _check_sessions(self, event: events.CheckSessions) -> Effects | Steps:
        from pykafkad.metadata import broker_lifecycle

        return broker_lifecycle.check_sessions(self, event)

    def _broker_gone(self, event: events.BrokerGone) -> Effects | Steps:
        from pykafkad.metadata import broker_lifecycle

        return broker_lifecycle.broker_gone(self, event)

    def _register_controller(self, event: events.RegisterController) -> Effects:
        from pykafkad.metadata import broker_lifecycle

        return broker_lifecycle.register_controller(self, event)

    def _unfence_broker(self, event: events.UnfenceBroker) -> Effects:
        broker = self.image.brokers.get(event.broker_id)
        if broker is None or broker.epoch != event.broker_epoch or not broker.fenced:
            return []
        return [*registrations.unfence(self.image, self.settings, broker.id)]

    def _stop_broker(self, event: events.StopBroker) -> Effects | Steps:
        self.local_brokers.discard(event.broker_id)
        if event.broker_id not in self.image.brokers:
            return []
        return registrations.stop(self.image, self.settings, event.broker_id)

    def _fence_broker(self, event: events.FenceBroker) -> Effects | Steps:
        broker = self.image.brokers.get(event.broker_id)
        if broker is None or broker.epoch != event.broker_epoch or broker.fenced:
            return []
        return registrations.fence(self.image, self.settings, broker.id)

    def _unregister_broker(self, event: events.UnregisterBroker) -> Effects:
        if event.is_controller:
            from pykafkad.metadata import controller_registrations

            return controller_registrations.unregister(self.image, self.node_id, event)
        response = messages.UnregisterBrokerResponse
        if event.broker_id not in self.image.brokers:
            text = f"Broker ID {event.broker_id} is not currently registered"
            return [Reply(event.token, response(error_code=errors.BROKER_ID_NOT_REGISTERED, error_message=text))]
        return [
            *registrations.unregister(self.image, self.settings, event.broker_id),
            Reply(event.token, response(error_message="")),
        ]

    def _update_features(self, event: events.UpdateFeatures) -> Effects:
        from pykafkad.metadata import feature_updates

        return feature_updates.update(self.image, self.settings, self.node_id, event)

    # ---- topics

    def _create_topics(self, event: events.CreateTopics, askers: dict[str, Asker] | None = None) -> Steps:
        changes = creation.Creation(self.image, self.settings, self.random, event.mutations)
        row = messages.CreateTopicsResponse.CreatableTopicResult
        try:
            rows = yield from changes.topics(event.topics, event.describable)
        except KafkaError as error:
            rows = _refuse_all(changes, event, row, error)
        if not event.validate_only:
            asker_of = (askers or {}).get
            self._note_askers(rows, lambda row: asker_of(row.name, event.asker))
        return _finish_creation(changes, event, messages.CreateTopicsResponse(topics=rows + event.refused))

    def _auto_create_topics(self, event: events.AutoCreateTopics) -> Steps:
        brokers = len(self.image.brokers)
        topics = [
            creation.automatic_topic(name, self.settings, brokers)
            for name in dict.fromkeys(event.names)
            if name not in self.image.topics
        ]
        # There is no response, so no settings need to be described.
        return self._create_topics(
            events.CreateTopics(None, topics, describable=frozenset(), mutations=event.mutations), event.askers
        )

    def _delete_topics(self, event: events.DeleteTopics) -> Steps:
        row = messages.DeleteTopicsResponse.DeletableTopicResult
        records: list[StoredRecord] = []
        results = []
        for topic_id, name in event.topics.items():
            yield
            code, text, known = errors.NONE, None, self.image.topic_by_id(topic_id)
            try:
                if known is None:
                    raise KafkaError(errors.UNKNOWN_TOPIC_ID, errors.message(errors.UNKNOWN_TOPIC_ID))
                if event.mutations is not None:
                    event.mutations.record(len(known.partitions))
                records.append(record_codec.record(messages.RemoveTopicRecord(topic_id=topic_id)))
            except KafkaError as error:
                code, text = error.code, error.text
            results.append(row(name=name, topic_id=topic_id, error_code=code, error_message=text))
        self._note_askers(results, lambda row: event.asker)
        return _finish(event.token, records, messages.DeleteTopicsResponse(responses=results + event.refused))

    def _note_askers(self, rows: list[Any], asker_of: Callable[[Any], Asker | None]) -> None:
        """Keep who asked for the topics of the rows without an error, as far as the log names topics."""
        image = self.image
        named = [row for row in rows if row.error_code == errors.NONE][:TOPICS_NAMED]
        changed = [(row.topic_id, asker_of(row)) for row in named]
        if image.topic_askers is None and any(asker for _, asker in changed):
            from pykafkad.metadata.topic_askers import TopicAskers

            image.topic_askers = TopicAskers()
        if image.topic_askers is not None:
            image.topic_askers.note(changed)

    def _create_partitions(self, event: events.CreatePartitions) -> Steps:
        changes = creation.Creation(self.image, self.settings, self.random, event.mutations)
        row = messages.CreatePartitionsResponse.CreatePartitionsTopicResult
        try:
            rows = yield from changes.partitions(event.topics)
        except KafkaError as error:
            rows = _refuse_all(changes, event, row, error)
        return _finish_creation(changes, event, messages.CreatePartitionsResponse(results=rows + event.refused))

    def _alter_partition(self, event: events.AlterPartition) -> Effects:
        from pykafkad.metadata import alter_partition

        return _finish(event.token, *alter_partition.alter(self.image, self.settings, event))

    def _alter_reassignments(self, event: events.AlterPartitionReassignments) -> Steps:
        from pykafkad.metadata import reassignments

        return _finish(event.token, *(yield from reassignments.alter(self.image, self.settings, event.request)))

    def _elect_leaders(self, event: events.ElectLeaders) -> Steps:
        from pykafkad.metadata import elections

        return _finish(event.token, *(yield from elections.elect(self.image, self.settings, event)))

    def _elect_by_itself(self, event: events.ElectByItself) -> Steps:
        from pykafkad.metadata import elections

        records = yield from elections.elect_by_itself(self.image, self.settings, event.election)
        return _finish(event.token, records, len(records))

    def _assign_replicas(self, event: events.AssignReplicasToDirs) -> Effects:
        from pykafkad.metadata import directories

        return [*registrations.in_batches(directories.assign(self.image, self.settings, event))]

    def _assign_replicas_of_request(self, event: events.AssignReplicas) -> Effects:
        from pykafkad.metadata import directories

        records, response = directories.assign_requested(self.image, self.settings, event.request)
        return [*registrations.in_batches(records), Reply(event.token, response)]

    def _change_log_dirs(self, event: events.ChangeLogDirs) -> Effects:
        from pykafkad.metadata import directories

        return [*registrations.in_batches(directories.change(self.image, self.settings, event))]

    # ---- settings

    def _alter_configs(self, event: events.AlterConfigs) -> Steps:
        changes = Alteration(self.image, self.settings)
        rows = []
        # As in Kafka, an unknown operation fails the whole request with an unspecific error.
        has_unknown_operation = event.incremental and any(
            each[1] not in OPERATION_NAMES for _, _, asked in event.changes for each in asked
        )
        response_class: Any = (
            messages.IncrementalAlterConfigsResponse if event.incremental else messages.AlterConfigsResponse
        )
        row_class = response_class.AlterConfigsResourceResponse
        for resource_type, name, operations in event.changes:
            yield
            code, text = errors.NONE, None
            try:
                if has_unknown_operation:
                    raise KafkaError(errors.UNKNOWN_SERVER_ERROR)
                if len(changes.records) > record_codec.MAX_RECORDS_PER_CHANGE:
                    # The whole request is refused below, so the other resources need no checks.
                    raise KafkaError(errors.POLICY_VIOLATION, creation.TOO_LARGE)
                changes.resource(resource_type, name, operations, event.incremental)
            except KafkaError as error:
                code, text = error.code, error.text
            rows.append(row_class(error_code=code, error_message=text, resource_type=resource_type, resource_name=name))
        if not record_codec.fits_one_batch(changes.records):
            changes.records.clear()
            for row in rows:
                row.error_code, row.error_message = errors.POLICY_VIOLATION, creation.TOO_LARGE
        for position in sorted(event.refused):
            rows.insert(position, event.refused[position])
        return _finish(event.token, [] if event.validate_only else changes.records, response_class(responses=rows))

    # ---- ACLs, client quotas, SCRAM credentials

    def _create_acls(self, event: events.CreateAcls) -> Effects:
        from pykafkad.metadata import acls

        release, check = self.settings.release, None
        if release is not None and "CreateAcls.address_ranges" in release.answers:
            from pykafkad.metadata import address_ranges

            level = self.image.features.get(features.METADATA_VERSION, 0)
            check = lambda creation: address_ranges.check(creation.host, level)  # noqa: E731
        elif release is not None and (highest := release.answers.get("CreateAcls.highest_operation")):
            check = lambda creation: acls.check_operation(creation, highest)  # noqa: E731
        return _finish(event.token, *acls.create(event.creations, self.image, self.random, check))

    def _delete_acls(self, event: events.DeleteAcls) -> Effects:
        from pykafkad.metadata import acls

        return _finish(event.token, *acls.delete(event.filters, self.image))

    def _alter_client_quotas(self, event: events.AlterClientQuotas) -> Effects:
        from pykafkad.metadata import client_quotas

        release = self.settings.release
        is_finite = release is not None and "AlterClientQuotas.finite" in release.answers
        changed = client_quotas.alter(event.entries, event.validate_only, self.image, must_be_finite=is_finite)
        return _finish(event.token, *changed)

    def _alter_scram_credentials(self, event: events.AlterUserScramCredentials) -> Effects:
        from pykafkad.metadata import credentials

        return _finish(event.token, *credentials.alter(event.deletions, event.upsertions, self.image))

    # ---- delegation tokens

    def _create_delegation_token(self, event: events.CreateDelegationToken) -> Effects:
        from pykafkad.metadata import delegation_tokens

        return _finish(event.token, *delegation_tokens.create(event, self.image, self.settings, self.random))

    def _renew_delegation_token(self, event: events.RenewDelegationToken) -> Steps:
        from pykafkad.metadata import delegation_tokens

        tokens = self._tokens_by_hmac()
        yield from tokens.follow()
        return _finish(event.token, *delegation_tokens.renew(event, self.image, self.settings, tokens))

    def _expire_delegation_token(self, event: events.ExpireDelegationToken) -> Steps:
        from pykafkad.metadata import delegation_tokens

        tokens = self._tokens_by_hmac()
        yield from tokens.follow()
        return _finish(event.token, *delegation_tokens.expire(event, self.image, self.settings, tokens))

    def _remove_expired_tokens(self, event: events.RemoveExpiredTokens) -> Effects:
        from pykafkad.metadata import delegation_tokens

        records = delegation_tokens.remove_expired(self.image, event.now_ms)
        return _finish(event.token, records, len(records))

    def _tokens_by_hmac(self) -> TokensByHmac:
        if self._tokens is None:
            from pykafkad.metadata.delegation_tokens import TokensByHmac

            self._tokens = TokensByHmac(self.image, self.settings.delegation_token_secret_key or "")
        return self._tokens

    # ---- producer ids

    def _allocate_producer_ids(self, event: events.AllocateProducerIds) -> Effects:
        """Assign a block of producer ids. They are unique in the cluster, because the block is written to the log
        before any of them is used."""
        broker = self.image.brokers.get(event.broker_id)
        if broker is None or broker.epoch != event.broker_epoch:
            stale = messages.AllocateProducerIdsResponse(error_code=errors.STALE_BROKER_EPOCH)
            return _finish(event.token, [], stale)
        first = self.image.next_producer_id
        if first > MAX_PRODUCER_ID - PRODUCER_ID_BLOCK_SIZE:
            raise KafkaError(errors.UNKNOWN_SERVER_ERROR, "all producer ids of 64 bits have been assigned")
        allocation = messages.ProducerIdsRecord(
            broker_id=event.broker_id, broker_epoch=event.broker_epoch, next_producer_id=first + PRODUCER_ID_BLOCK_SIZE
        )
        response = messages.AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=PRODUCER_ID_BLOCK_SIZE)
        return _finish(event.token, [record_codec.record(allocation)], response)


def _refuse_all(
    changes: creation.Creation, event: events.CreateTopics | events.CreatePartitions, row: Any, error: KafkaError
) -> list[Any]:
    """Refuse a request as a whole: no records are written, and the row of every topic has the error."""
    changes.records.clear()
    return [row(name=topic.name, error_code=error.code, error_message=error.text) for topic in event.topics]


def _finish_creation(
    changes: creation.Creation, event: events.CreateTopics | events.CreatePartitions, response: messages.Struct
) -> Effects:
    return _finish(event.token, [] if event.validate_only else changes.records, response)


def _finish(token: object, records: list[StoredRecord], response: object) -> Effects:
    """The effects of an event: append the records, then send the response, unless nobody waits for it."""
    effects: Effects = []
    if records:
        effects.append(Append(record_codec.LOG, records))
    if token is not None:
        effects.append(Reply(token, response))
    return effects


_STEPS: dict[type, Callable[[Controller, Any], Effects | Steps]] = {
    events.Activate: Controller._activate,
    events.RegisterBroker: Controller._register_broker,
    events.BrokerRegistration: Controller._broker_registration,
    events.BrokerHeartbeat: Controller._broker_heartbeat,
    events.BeginSessions: Controller._begin_sessions,
    events.BrokerGone: Controller._broker_gone,
    events.CheckSessions: Controller._check_sessions,
    events.RegisterController: Controller._register_controller,
    events.UnfenceBroker: Controller._unfence_broker,
    events.StopBroker: Controller._stop_broker,
    events.FenceBroker: Controller._fence_broker,
    events.UnregisterBroker: Controller._unregister_broker,
    events.UpdateFeatures: Controller._update_features,
    events.CreateTopics: Controller._create_topics,
    events.AutoCreateTopics: Controller._auto_create_topics,
    events.DeleteTopics: Controller._delete_topics,
    events.CreatePartitions: Controller._create_partitions,
    events.AlterPartition: Controller._alter_partition,
    events.AlterPartitionReassignments: Controller._alter_reassignments,
    events.ElectLeaders: Controller._elect_leaders,
    events.ElectByItself: Controller._elect_by_itself,
    events.AssignReplicasToDirs: Controller._assign_replicas,
    events.AssignReplicas: Controller._assign_replicas_of_request,
    events.ChangeLogDirs: Controller._change_log_dirs,
    events.AlterConfigs: Controller._alter_configs,
    events.CreateAcls: Controller._create_acls,
    events.DeleteAcls: Controller._delete_acls,
    events.AlterClientQuotas: Controller._alter_client_quotas,
    events.AlterUserScramCredentials: Controller._alter_scram_credentials,
    events.CreateDelegationToken: Controller._create_delegation_token,
    events.RenewDelegationToken: Controller._renew_delegation_token,
    events.ExpireDelegationToken: Controller._expire_delegation_token,
    events.RemoveExpiredTokens: Controller._remove_expired_tokens,
    events.AllocateProducerIds: Controller._allocate_producer_ids,
}
