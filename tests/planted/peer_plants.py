"""Bugs to plant in `pykafkad/server`: what nodes say to each other."""

from __future__ import annotations

from tests.planted.plant import Plant

PEER = ("tests/server/test_peer.py",)
LINKS = ("tests/server/test_local_links.py",)
REPLICATED = ("tests/server/test_replicated_brokers.py",)
SECURITY = ("tests/server/test_peer_security.py",)
EXCHANGES = ("tests/sasl/test_node_logins.py",)
BROKERS = ("tests/simulation/test_brokers_world.py",)
FETCHER = ("tests/server/test_leader_fetcher.py",)
UNMADE = ("tests/server/test_unmade_partitions.py",)

PLANTS = (
    Plant(
        "acks=all never ends where a sync came before the wait for followers",
        "server/commits.py",
        "if answers.deadline < NEVER and not log.replica.commits_alone",
        "if not behind[log] and answers.deadline < NEVER and not log.replica.commits_alone",
        REPLICATED,
    ),
    Plant(
        "a server whose side of the login is not right is not told of",
        "server/peer.py",
        "assert connection is not None\nconnection.close(str(error))",
        "assert connection is not None\nself._disconnect(str(error))",
        SECURITY,
    ),
    Plant(
        "a request goes in the newest version that this node knows, whatever the other knows",
        "server/peer_greeting.py",
        "version: int = min(theirs[1], row.max_version)",
        "version: int = row.max_version",
        PEER,
    ),
    Plant(
        "an API of versions that are all newer is asked in the oldest of them",
        "server/peer_greeting.py",
        "return version if version >= max(theirs[0], row.min_version) else None",
        "return max(version, theirs[0])",
        PEER,
    ),
    Plant(
        "an answer in version 0 is read in the version that was asked for",
        "server/peer_greeting.py",
        "return 0 if key == frames.API_VERSIONS and bytes(body[:2]) == _UNSUPPORTED else version",
        "return version",
        PEER,
    ),
    Plant(
        "requests are sent before the versions are known",
        "server/peer.py",
        "if self._is_ready:\n    self._send_queued()\nelif self._connection is None",
        "if self._greeting is not None:\n    self._send_queued()\nelif self._connection is None",
        PEER,
    ),
    Plant(
        "a node that refuses every greeting is tried again and again at once",
        "server/peer.py",
        "self._greeting = Greeting(self._security.credentials)",
        "self._greeting = Greeting(self._security.credentials)\nself._failures = 0",
        PEER,
    ),
    Plant(
        "a greeting that is not answered holds the requests behind it longer than they may wait",
        "server/peer.py",
        "self._runtime.timers.set((self, _DEADLINE), min(oldest))",
        "self._runtime.timers.set((self, _DEADLINE), oldest[-1] + 1.0)",
        PEER,
    ),
    Plant(
        "a request that the controller cannot answer is sent again and again",
        "server/controller_channel.py",
        "if outcome.is_final if failed else not _is_not_controller(outcome):",
        "if not failed and not _is_not_controller(outcome):",
        ("tests/server/test_controller_channel.py",),
    ),
    Plant(
        "a certificate of another name is accepted",
        "server/tls_settings.py",
        "made.check_hostname = checks_name",
        "made.check_hostname = False",
        SECURITY,
    ),
    Plant(
        "a certificate of anybody is accepted",
        "server/tls_settings.py",
        "made.check_hostname = checks_name",
        "made.check_hostname = False\nmade.verify_mode = ssl.CERT_NONE",
        SECURITY,
    ),
    Plant(
        "a node does not log in",
        "server/peer_greeting.py",
        "self._stage = _OVER if self._credentials is None else _HANDSHAKE",
        "self._stage = _OVER",
        SECURITY,
    ),
    Plant(
        "a controller's listener asks for no login",
        "server/controller_node.py",
        "if each.has_sasl:",
        "if False:",
        SECURITY,
    ),
    Plant(
        "requests are sent before the login is over",
        "server/peer_greeting.py",
        "if self._stage == _AUTHENTICATE:\n    assert",
        "if self._stage == _AUTHENTICATE and self._steps:\n    return None\nif self._stage == _AUTHENTICATE:\n    assert",
        SECURITY,
    ),
    Plant(
        "a login is not renewed before it expires",
        "server/peer.py",
        "if greeting.lifetime_ms:",
        "if False:",
        SECURITY,
    ),
    Plant(
        "a server need not know the password",
        "sasl/client.py",
        'if not compare_digest(_bytes(said.get("v", "")), self._signature):',
        "if False:",
        EXCHANGES,
    ),
    Plant(
        "a login counts before the server has shown that it knows the password",
        "sasl/client.py",
        "if self._signature is None:\n    return self._prove(text)",
        "if self._signature is None:\n    self.is_over = True\n    return self._prove(text)",
        EXCHANGES,
    ),
    Plant(
        "a server may ask for one iteration",
        "sasl/client.py",
        "if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:",
        "if not 1 <= iterations <= ITERATIONS_MAX:",
        EXCHANGES,
    ),
    Plant(
        "the nonce of another login is taken",
        "sasl/client.py",
        "if not nonce.startswith(self._nonce) or nonce == self._nonce:",
        "if nonce == self._nonce:",
        EXCHANGES,
    ),
    Plant(
        "brokers of one process ask the authorizer about each other",
        "server/local_links.py",
        "allowed = could",
        "",
        LINKS,
    ),
    Plant(
        "brokers of one process that all ask for logins look for a listener without them",
        "server/cluster_settings.py",
        "return index_between(settings, listening) is None or (",
        "return (",
        LINKS,
    ),
    Plant(
        "brokers of one process come to each other where strangers may do what brokers do",
        "server/cluster_settings.py",
        "bool(settings.authorizer_class_name) and ANONYMOUS not in",
        "bool(settings.authorizer_class_name) and ANONYMOUS in",
        LINKS,
    ),
    Plant(
        "the high watermark of an answer that parts the logs counts as heard",
        "server/leader_fetcher.py",
        "if question != machine.question() or diverging[0] >= 0:",
        "if False:",
        BROKERS,
    ),
    Plant(
        "the only log of a leader is not fetched again when its disk has space",
        "server/broker.py",
        "if self._replication is not None:\n    self._replication.log_recovered(log)",
        "pass",
        FETCHER,
    ),
    Plant(
        "a partition that was cut waits for records of the others",
        "server/leader_fetcher.py",
        "    later = due if later is None else min(later, due)\nelse:\n    is_held_up = True",
        "    later = due if later is None else min(later, due)",
        FETCHER,
    ),
    Plant(
        "a partition whose leader is asked where its log begins waits for records of the others",
        "server/leader_fetcher.py",
        "elif followed.asks_offsets:\n    is_held_up = True",
        "",
        FETCHER,
    ),
    Plant(
        "nobody notices that a follower's log is out of service",
        "server/leader_fetcher.py",
        "self._broker.log_failed(log, log.offline)",
        "pass",
        FETCHER,
    ),
    Plant(
        "a partition that could not be made is tried once",
        "server/partitions.py",
        "if may_pass:\n    self._commits.broker.unmade_partitions.add(log)",
        "",
        UNMADE,
    ),
    Plant(
        "what coordinates by a partition does not hear that it was made",
        "server/unmade_partitions.py",
        "broker.log_recovered(made)",
        "pass",
        UNMADE,
    ),
    Plant(
        "partitions are made on a disk without space",
        "server/unmade_partitions.py",
        "if free_bytes(self._broker.directories.metadata) < ROOM_BYTES:",
        "if False:",
        UNMADE,
    ),
    Plant(
        "partitions that are deleted on a full disk are remembered",
        "server/unmade_partitions.py",
        "self._forget_deleted()",
        "pass",
        UNMADE,
    ),
    Plant(
        "a partition that could not be made is made after it was moved away",
        "server/partitions.py",
        "if topic is None or self._by_name.get((log.topic, log.partition)) is not log:\n    return None",
        "if topic is None:\n    return None",
        UNMADE,
    ),
)
