"""`pykafkad serve --brokers N [--controllers N] --processes`: each broker and controller in a process of its own.

This process is their parent: it starts the controllers, then the brokers, has what the command line names created, says
that all of them serve, and stops them in the opposite order. It serves nothing itself. When it is killed, its children
end (`node_process.py`)."""

from __future__ import annotations

from functools import partial
from random import Random

from pykafkad.cli import serve_files
from pykafkad.disk import Disk
from pykafkad.errors import StartFailure
from pykafkad.log import snapshot_store
from pykafkad.server import cluster_settings, peer_security, run
from pykafkad.server.binding import reserved_port
from pykafkad.server.child_nodes import ChildNodes, Interrupted
from pykafkad.server.logs import process_logs
from pykafkad.server.start_requests import StartRequests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.cli.serve import Prepared
    from pykafkad.cli.serve_options import Options
    from pykafkad.config import Settings
    from pykafkad.server.child_nodes import ChildNode
    from pykafkad.server.node_links import NodeIdentity

_MEMORY = "pykafkad.memory.max.bytes"


def serve(
    options: Options,
    made: Prepared,
    settings: Settings,
    brokers: Sequence[Settings],
    controllers: int,
    identity: NodeIdentity | None,
    words: dict[str, str],
) -> int:
    """Serve until a signal, or until no broker is left; the exit code. With an `identity` nodes reach each other by
    that; `words` stand in the readiness line. Raises ConfigError for settings that cannot be, and StartFailure when a
    node cannot start."""
    if identity is None:
        cluster_settings.check_listeners(settings, run.parse_listeners(brokers[0]))
    ready_file, topics = serve_files.ready_file(options.ready_file), made.topics()
    try:
        ports = [reserved_port(cluster_settings.CONTROLLER_HOST) for _ in range(controllers)]
    except OSError as error:
        raise StartFailure(f"no port for a controller: {error.strerror or error}") from None
    quorum, members = cluster_settings.of_quorum(settings, brokers, ports, Disk(), Random(), identity)
    if settings.pykafkad_memory_max_bytes:
        share = str(settings.pykafkad_memory_max_bytes // (len(quorum) + len(members)) or 1)
        quorum, members = ([type(each)({**each.static, _MEMORY: share}) for each in some] for some in (quorum, members))
    paths, disk = [path for each in (*quorum, *members) for path in each.log_directories], Disk()
    # Data in memory ends with its process.
    saved_paths = [] if settings.pykafkad_memory_max_bytes else paths
    snapshot_store.remove_all(disk, snapshot_store.settle(disk, saved_paths))
    nodes = ChildNodes(process_logs(), is_json=options.log_format == "json", snapshot_paths=saved_paths)
    run.obey_signals(lambda: nodes, nodes.kill)
    try:
        controlling, begun = nodes.start(quorum), nodes.start(members)
        nodes.wait_ready(controlling)
        # The directories are known to be ours: what an earlier process wrote when it was ready goes.
        run.forget_ready(ready_file)
        nodes.wait_ready(begun)
        addresses = [
            cluster_settings.address_between(each, node.addresses) for each, node in zip(members, begun, strict=True)
        ]
        requests = StartRequests(addresses, nodes.is_stopped, security=peer_security.of_brokers(members[0]))
        requests.settle(topics, made.acls, made.users)
        # The last listener is that of the nodes, where they have one.
        listening = list(zip(*(each.addresses for each in begun), strict=True))[: -1 if identity else None]
        run.tell_ready([",".join(each) for each in listening], ready_file, words)
        again = [*quorum, *(_at_ports(each, node.addresses) for each, node in zip(members, begun, strict=True))]
        try:
            was_stopped = nodes.serve(partial(_act, nodes, again, saved_paths, disk))
        finally:
            # Also where a way back ends the process.
            run.forget_ready(ready_file)
    except (Interrupted, StartFailure):
        if nodes.stopping is None:
            raise
        was_stopped = True
    finally:
        nodes.close()
    return 0 if was_stopped else 1


def _at_ports(settings: Settings, addresses: Sequence[str]) -> Settings:
    """The same node, which listens where it was found to."""
    entries = [
        f"{entry.rpartition(':')[0]}:{address.rpartition(':')[2]}" if entry.endswith(":0") else entry
        for entry, address in zip(settings.listeners, addresses, strict=True)
    ]
    return type(settings)({**settings.static, "listeners": ",".join(entries)})


def _act(nodes: ChildNodes, again: Sequence[Settings], paths: list[str], disk: Disk, asked: ChildNode) -> None:
    """Make a snapshot, or go back to one, as a node was asked."""
    from pykafkad.server.child_snapshots import ChildSnapshots

    snapshots = ChildSnapshots(nodes, paths, disk, process_logs(), lambda: nodes.wait_ready(nodes.start(again)))
    snapshots.perform(asked)
