"""What `pykafkad cluster` changes: where replicas are, who leads, and which brokers take new ones."""

from __future__ import annotations

import sys

from pykafkad.cli import balance_plan, client, cluster_state, drain_plan
from pykafkad.cli.output import Failure, print_error, print_table
from pykafkad.errors import ELECTION_NOT_NEEDED, name as error_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import Any

    from pykafkad.cli.cluster_state import Broker, Place

AT_ONCE = 50
TIMEOUT_SECONDS = 3600
PAUSE_SECONDS = 0.3
SETTLED_SECONDS = 10
"""How late brokers may know of a move that the controller has ended."""
ROUNDS = 5
"""How often a drain moves what came meanwhile."""
CORDONED = "cordoned.log.dirs"
_PREFERRED, _UNCLEAN = 0, 1


def add_actions(add: Callable[..., argparse.ArgumentParser]) -> tuple[argparse.ArgumentParser, ...]:
    """The actions `move`, `elect`, `drain`, `balance` and `undrain`."""
    move = add("move", help="move partitions to other brokers, or give them more or fewer replicas")
    move.add_argument("targets", nargs="+", metavar="TOPIC[:PARTITION]", help="a topic, or one of its partitions")
    where = move.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--to",
        metavar="IDS",
        help="the brokers that shall have the replicas, such as 1,2,3. Of a single partition the first is the "
        "preferred leader; the partitions of a topic begin with each of them in turn",
    )
    where.add_argument("--cancel", action="store_true", help="go back to the replicas of before the move")
    _add_waiting(move, "--wait", "wait until the replicas are there, and tell how far it is")
    elect = add("elect", help="make the preferred replicas leaders again")
    elect.add_argument(
        "targets", nargs="*", metavar="TOPIC[:PARTITION]", help="a topic, or one of its partitions (default: all)"
    )
    elect.add_argument(
        "--unclean",
        action="store_true",
        help="give partitions without a leader one that is not in sync: records may be lost",
    )
    drain = add("drain", help="move all replicas and leaders off a broker, so that it can go")
    drain.add_argument(
        "brokers", type=int, nargs="+", metavar="BROKER", help="its node id; of several none takes what another had"
    )
    drain.add_argument("--dry-run", action="store_true", help="only print what would move")
    drain.add_argument(
        "--at-once", type=client.count, default=AT_ONCE, metavar="N", help=f"partitions at a time (default: {AT_ONCE})"
    )
    _add_waiting(drain)
    balance = add("balance", help="move replicas so that every broker has, and leads, as many as the others")
    balance.add_argument("--dry-run", action="store_true", help="only print what would move")
    balance.add_argument(
        "--at-once", type=client.count, default=AT_ONCE, metavar="N", help=f"partitions at a time (default: {AT_ONCE})"
    )
    _add_waiting(balance)
    undrain = add("undrain", help="let a broker that was drained take new replicas again")
    undrain.add_argument("broker", type=int, metavar="BROKER", help="its node id")
    return move, elect, drain, balance, undrain


def _add_waiting(action: argparse.ArgumentParser, option: str = "", text: str = "") -> None:
    if option:
        action.add_argument(option, action="store_true", help=text)
    action.add_argument(
        "--timeout",
        type=client.count,
        default=TIMEOUT_SECONDS,
        metavar="SECONDS",
        help=f"longest wait (default: {TIMEOUT_SECONDS})",
    )


# ---- move


def move(options: argparse.Namespace) -> int:
    """Moves partitions; the exit code is 1 when one was refused."""
    replicas = None if options.cancel else _brokers(options.to)
    with client.admin(options) as admin:
        if replicas is not None:
            _check(cluster_state.brokers(admin.describe_cluster()), replicas)
        wanted: dict[Place, list[int] | None] = {}
        for topic, indexes, is_whole in _targets(admin, options):
            for index in indexes:
                wanted[topic, index] = None if replicas is None else _turned(replicas, index if is_whole else 0)
        refused = reassign(admin, wanted)
        begun = {place: replicas for place, replicas in wanted.items() if place not in refused}
        if options.wait and not options.cancel:
            wait(admin, {place: each for place, each in begun.items() if each is not None}, options.timeout)
        left = cluster_state.moves(admin)
    rows = [(*place, each, "moving" if place in left else "cancelled" if each is None else "moved")
            for place, each in begun.items()]  # fmt: skip
    print_table(("topic", "partition", "replicas", "result"), rows, as_json=options.json)
    _print_refused(refused)
    return 1 if refused else 0


def _brokers(text: str) -> list[int]:
    numbers = [each.strip() for each in text.split(",")]
    if not all(each.isascii() and each.isdecimal() for each in numbers) or len(set(map(int, numbers))) < len(numbers):
        raise Failure(f"--to {text}: must be node ids with commas, each once, such as 1,2,3", 2)
    return [int(each) for each in numbers]


def _turned(replicas: list[int], index: int) -> list[int]:
    """Each partition of a topic begins with another broker, so that all of them lead."""
    first = index % len(replicas)
    return replicas[first:] + replicas[:first]


def _check(known: Mapping[int, Broker], wanted: Iterable[int]) -> None:
    """Raises Failure for a broker that the cluster does not have."""
    for each in wanted:
        if each not in known:
            raise Failure(f"there is no broker {each}; the brokers are {', '.join(map(str, known))}")


def _targets(admin: Any, options: argparse.Namespace) -> list[tuple[str, list[int], bool]]:
    """Each topic that is named, with its partitions, and whether it is named as a whole."""
    found = []
    for text in options.targets:
        topic, colon, number = text.partition(":")
        if colon and not (number.isascii() and number.isdecimal()):
            raise Failure(f"{text}: must be TOPIC or TOPIC:PARTITION", 2)
        only = [int(number)] if colon else None
        known = client.partitions_of(admin, options.bootstrap, topic, only)
        found.append((topic, [each.partition for each in known], not colon))
    return found


def reassign(admin: Any, wanted: Mapping[Place, list[int] | None]) -> dict[Place, str]:
    """Begins the moves of partitions to replicas, or with None ends one; what was refused, with the reason."""
    from kafka.protocol.admin import AlterPartitionReassignmentsRequest as Request

    topics: dict[str, list[Any]] = {}
    for (topic, index), replicas in wanted.items():
        row = Request.ReassignableTopic.ReassignablePartition(partition_index=index, replicas=replicas)
        topics.setdefault(topic, []).append(row)
    request = Request(
        timeout_ms=client.TIMEOUT_MS,
        topics=[Request.ReassignableTopic(name=name, partitions=rows) for name, rows in topics.items()],
    )
    answer = _ask_controller(admin, request)
    return {
        (topic.name, row.partition_index): _reason(row.error_code, row.error_message)
        for topic in answer.responses
        for row in topic.partitions
        if row.error_code
    }


def _ask_controller(admin: Any, request: Any) -> Any:
    """The controller's answer. Raises Failure when it refuses the request as a whole."""
    from kafka.errors import for_code

    def errors(answer: Any) -> list[Any]:
        return [for_code(answer.error_code)]

    # Without raise_errors it only looks for a controller that is another by now.
    answer = admin._manager.run(admin._send_request_to_controller, request, errors, False)
    if answer.error_code:
        raise Failure(_reason(answer.error_code, getattr(answer, "error_message", None)))
    return answer


def _reason(code: int, words: str | None) -> str:
    return f"{error_name(code)}: {words}" if words else error_name(code)


def _still_moving(count: int, timeout_seconds: float) -> str:
    return f"{count} {'partition is' if count == 1 else 'partitions are'} still moving after {timeout_seconds} s"


def _print_refused(refused: Mapping[Place, str]) -> None:
    for (topic, index), reason in refused.items():
        print_error(f"{topic}-{index}: {reason}")


def wait(
    admin: Any, wanted: Mapping[Place, list[int]], timeout_seconds: float, before: int = 0, total: int = 0
) -> None:
    """Waits until partitions have their replicas, and tells people how far it is, where `before` of `total` were moved
    before these. Raises Failure after that time, and for a move that somebody else changed or ended."""
    from time import monotonic, sleep

    until, settled_until, shown = monotonic() + timeout_seconds, 0.0, -1
    while True:
        left = [place for place in cluster_state.moves(admin) if place in wanted]
        if len(left) != shown:
            shown = len(left)
            _progress(f"{before + len(wanted) - shown} of {total or len(wanted)} partitions moved")
        if left:
            settled_until = 0.0
            if monotonic() >= until:
                names = ", ".join(f"{topic}-{index}" for topic, index in left[:5])
                raise Failure(
                    f"{_still_moving(len(left), timeout_seconds)} ({names}): `pykafkad cluster describe` shows what "
                    "goes on, `pykafkad cluster move TOPIC --cancel` ends it"
                )
        else:
            others = _elsewhere(admin, wanted)
            if not others:
                return
            settled_until = settled_until or monotonic() + SETTLED_SECONDS
            if monotonic() >= settled_until:
                raise Failure(_not_settled(*next(iter(others.items())), wanted))
        sleep(PAUSE_SECONDS)


def _not_settled(place: Place, replicas: list[int] | None, wanted: Mapping[Place, list[int]]) -> str:
    name = f"{place[0]}-{place[1]}"
    if replicas is None:
        return f"{name} may have moved, but brokers do not tell its replicas: they cannot be asked, or it was deleted"
    return f"{name} has the replicas {replicas}, not {wanted[place]}: its move was changed"


def _elsewhere(admin: Any, wanted: Mapping[Place, list[int]]) -> dict[Place, list[int] | None]:
    """The partitions that have other replicas than wanted, as any of the brokers knows them: whoever asks next may ask
    another one, and one that is late tells of replicas that are gone. None where a broker does not know the partition,
    or no broker can be asked."""
    if not wanted:
        return {}
    known = cluster_state.replicas_by_broker(admin, sorted({topic for topic, _ in wanted}))
    found: dict[Place, list[int] | None] = {}
    for place, replicas in wanted.items():
        for each in known.values() or ({},):
            if each.get(place) != replicas:
                found[place] = each.get(place)
    return found


def _progress(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


# ---- elect


def elect(options: argparse.Namespace) -> int:
    """Elects leaders; the exit code is 1 when that failed for a partition."""
    if options.unclean and not options.targets:
        raise Failure("--unclean loses the records that the new leader does not have: name the topics", 2)
    with client.admin(options) as admin:
        places = [(topic, index) for topic, indexes, _ in _targets(admin, options) for index in indexes]
        results = _elect(admin, places, is_unclean=options.unclean)
    rows = [
        (*place, "not needed" if code else "elected")
        for place, (code, _) in results.items()
        if code in (0, ELECTION_NOT_NEEDED)
    ]
    print_table(("topic", "partition", "result"), rows, as_json=options.json)
    refused = {place: reason for place, (code, reason) in results.items() if code not in (0, ELECTION_NOT_NEEDED)}
    _print_refused(refused)
    return 1 if refused else 0


def _elect(admin: Any, places: Iterable[Place], *, is_unclean: bool = False) -> dict[Place, tuple[int, str]]:
    """Has the controller elect leaders of some partitions, or of all without any; error code and reason of each."""
    from kafka.protocol.admin import ElectLeadersRequest as Request

    asked: dict[str, set[int]] = {}
    for topic, index in places:
        asked.setdefault(topic, set()).add(index)
    topics = [Request.TopicPartitions(topic=name, partitions=sorted(indexes)) for name, indexes in asked.items()]
    request = Request(
        election_type=_UNCLEAN if is_unclean else _PREFERRED,
        topic_partitions=topics or None,
        timeout_ms=client.TIMEOUT_MS,
        min_version=1,
    )
    answer = _ask_controller(admin, request)
    return {
        (topic.topic, row.partition_id): (row.error_code, _reason(row.error_code, row.error_message))
        for topic in sorted(answer.replica_election_results, key=lambda topic: topic.topic)
        for row in sorted(topic.partition_result, key=lambda row: row.partition_id)
    }


# ---- drain


def drain(options: argparse.Namespace) -> int:
    """Moves everything off some brokers, one after the other."""
    leaving: list[int] = list(dict.fromkeys(options.brokers))
    with client.admin(options) as admin:
        partitions = cluster_state.partitions(admin.describe_topics())
        _check(cluster_state.brokers(admin.describe_cluster(), partitions), leaving)
        moved = _planned(admin, leaving) if options.dry_run else _drain(admin, options, leaving)
    rows = [(*place, replicas) for place, replicas in sorted(moved.items())]
    print_table(("topic", "partition", "replicas"), rows, as_json=options.json)
    if not options.dry_run:
        for number in leaving:
            _progress(f"broker {number} has no replicas: it can be stopped")
    return 0


def _planned(admin: Any, leaving: Collection[int]) -> dict[Place, list[int]]:
    """The replicas that partitions would have when the brokers are drained one after the other."""
    planned: dict[Place, list[int]] = {}
    for number in leaving:
        plan, _ = _plan(admin, number, leaving, planned)
        _tell_remarks(plan)
        planned.update(plan.replicas)
    return planned


def _drain(admin: Any, options: argparse.Namespace, leaving: Collection[int]) -> dict[Place, list[int]]:
    """Moves everything off the brokers that are `leaving`; what has moved. None of them takes what another one had, but
    new topics may come to one while others are drained: it is over when all of them are empty."""
    moved: dict[Place, list[int]] = {}
    left = list(leaving)
    for turn in range(ROUNDS):
        for number in left:
            plan, is_active = _plan(admin, number, leaving)
            if not turn:
                _tell_remarks(plan)
                if is_active and (reason := _cordon(admin, number)):
                    _progress(f"broker {number} can still get new replicas meanwhile: {reason}")
            _drain_once(admin, options, plan)
            moved.update(plan.replicas)
        left = [number for number in leaving if _has_replicas(_plan(admin, number, leaving)[0])]
        if not left:
            return moved
    raise Failure(f"broker {left[0]} gets new replicas as fast as they leave; drain it once more")


def _has_replicas(plan: drain_plan.Plan) -> bool:
    return bool(plan.replicas or plan.leaving)


def _tell_remarks(plan: drain_plan.Plan) -> None:
    for sentence in plan.remarks:
        _progress(sentence)


def _plan(
    admin: Any, broker: int, leaving: Collection[int], planned: Mapping[Place, list[int]] | None = None
) -> tuple[drain_plan.Plan, bool]:
    """The plan for one broker, where partitions have the replicas that are `planned`; and whether it is active. Raises
    Failure when the broker's replicas can't go anywhere."""
    cluster = admin.describe_cluster()
    partitions, moves = drain_plan.applied(
        cluster_state.partitions(admin.describe_topics()), cluster_state.moves(admin), planned or {}
    )
    known = cluster_state.brokers(cluster, partitions)
    taking_nothing = {*_cordoned(admin, known), *leaving}
    plan = drain_plan.plan(broker, known, partitions, moves, taking_nothing)
    if plan.obstacles:
        raise Failure(f"broker {broker} cannot be drained: {'; '.join(plan.obstacles)}")
    # One that only partitions named is no longer known when they have left it.
    return plan, broker in known and known[broker].state == cluster_state.ACTIVE


def _drain_once(admin: Any, options: argparse.Namespace, plan: drain_plan.Plan) -> None:
    """Moves what the plan has; what leaves already is waited for too."""
    _move_all(admin, options, plan.replicas)
    _wait_for_others(admin, plan.leaving, options.timeout)


def _move_all(admin: Any, options: argparse.Namespace, replicas: Mapping[Place, list[int]]) -> None:
    """Moves some partitions after the other."""
    places = list(replicas)
    for first in range(0, len(places), options.at_once):
        some = {place: replicas[place] for place in places[first : first + options.at_once]}
        refused = reassign(admin, some)
        wait(
            admin,
            {place: each for place, each in some.items() if place not in refused},
            options.timeout,
            first,
            len(places),
        )
        if refused:
            _print_refused(refused)
            raise Failure(
                f"{len(refused)} partitions were refused; {len(places) - first - len(some)} were not asked for"
            )


def balance(options: argparse.Namespace) -> int:
    """Moves replicas from brokers with more to brokers with less."""
    with client.admin(options) as admin:
        cluster = admin.describe_cluster()
        partitions = cluster_state.partitions(admin.describe_topics())
        known = cluster_state.brokers(cluster, partitions)
        replicas = balance_plan.plan(known, partitions, cluster_state.moves(admin), _cordoned(admin, known))
        if not options.dry_run:
            _move_all(admin, options, replicas)
            # Those that stay where they are may have another leader than the preferred one too.
            _elect(admin, ())
    rows = [(*place, each) for place, each in sorted(replicas.items())]
    print_table(("topic", "partition", "replicas"), rows, as_json=options.json)
    return 0


def _wait_for_others(admin: Any, places: Collection[Place], timeout_seconds: float) -> None:
    """Waits for moves that somebody else began."""
    from time import monotonic, sleep

    until = monotonic() + timeout_seconds
    while places and (left := [place for place in cluster_state.moves(admin) if place in places]):
        if monotonic() >= until:
            raise Failure(_still_moving(len(left), timeout_seconds))
        sleep(PAUSE_SECONDS)


def undrain(options: argparse.Namespace) -> int:
    """Lets a broker take new replicas again."""
    with client.admin(options) as admin:
        _check(cluster_state.brokers(admin.describe_cluster()), [options.broker])
        if reason := _set_cordoned(admin, options.broker, None):
            raise Failure(f"broker {options.broker}: {reason}")
    _progress(f"broker {options.broker} takes new replicas; `pykafkad cluster balance` gives it some of the others'")
    return 0


def _cordon(admin: Any, broker: int) -> str | None:
    """Keeps new replicas away from a broker (KIP-1066); the reason where that cannot be."""
    if CORDONED not in _settings(admin, [broker]).get(broker, {}):
        return f"it does not know {CORDONED}"
    return _set_cordoned(admin, broker, "*")


def _set_cordoned(admin: Any, broker: int, value: str | None) -> str | None:
    from kafka.admin import ConfigResource, ConfigResourceType

    resource = ConfigResource(
        ConfigResourceType.BROKER, str(broker), {CORDONED: ("DELETE", None) if value is None else value}
    )
    answer = admin.alter_configs([resource], raise_on_unknown=False, incremental=True)["broker"][str(broker)]
    return client.refusal(answer)


def _settings(admin: Any, brokers: Iterable[int]) -> dict[int, dict[str, str | None]]:
    """Node id to the setting that keeps new replicas away, where the broker knows it."""
    from kafka.admin import ConfigResource, ConfigResourceType

    wanted = [ConfigResource(ConfigResourceType.BROKER, str(each), {CORDONED: None}) for each in brokers]
    if not wanted:
        return {}
    answer = admin.describe_configs(wanted, config_filter="all").get("broker", {})
    return {int(each): {key: row["value"] for key, row in found.items()} for each, found in answer.items()}


def _cordoned(admin: Any, known: Mapping[int, cluster_state.Broker]) -> list[int]:
    """The brokers that take no new replicas in any directory."""
    found = _settings(admin, [each.id for each in known.values() if each.state == cluster_state.ACTIVE])
    return [each for each, settings in found.items() if (settings.get(CORDONED) or "").strip() == "*"]
