"""Users of SCRAM that a command line names, stored as an administrator would store them; and the secret that the
cluster needs for those who do not exist."""

from __future__ import annotations

from os import urandom

from pykafkad import errors
from pykafkad.errors import ConfigError
from pykafkad.metadata import credentials, events
from pykafkad.metadata.configs import SET
from pykafkad.metadata.image import TYPE_BROKER
from pykafkad.sasl.offer import SECRET_BYTES
from pykafkad.sasl.scram import HASHES, USUAL_ITERATIONS, usual_salt
from pykafkad.server.start_token import StartToken
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pykafkad.metadata.image import Image
    from pykafkad.server.broker import Broker
    from pykafkad.server.wiring import Process

    Upsertion = messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion

SECRET = "pykafkad.sasl.scram.secret"

_SALT_BYTES = 18


def add(process: Process, users: Sequence[tuple[str, str, str]]) -> None:
    """Add the (name, password, mechanism) that are not stored yet, before anything is served; PLAIN is not stored.
    Raises ConfigError for one that cannot be."""
    image = process.controller.image
    for some in in_requests(each for each in users if each[2] in HASHES and not _is_stored(image, *each)):
        for row in process.ask_at_start(events.AlterUserScramCredentials(StartToken(), [], some)).results:
            if row.error_code:
                raise ConfigError(f"--user {row.user}: {row.error_message or errors.name(row.error_code)}")


def in_requests(users: Iterable[tuple[str, str, str]]) -> list[list[Upsertion]]:
    """The (name, password, mechanism) with SCRAM as requests have them: one names a user once."""
    wanted = []
    for name, password, mechanism in users:
        if mechanism in HASHES:
            salt = usual_salt(urandom(_SALT_BYTES))
            wanted.append(
                messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                    name=name,
                    mechanism=credentials.NUMBERS[mechanism],
                    iterations=USUAL_ITERATIONS,
                    salt=salt,
                    salted_password=_salted(password, mechanism, salt, USUAL_ITERATIONS),
                )
            )
    requests = []
    while wanted:
        names = {each.name: each for each in wanted}
        wanted = [each for each in wanted if names[each.name] is not each]
        requests.append(list(names.values()))
    return requests


def share_secret(broker: Broker) -> None:
    """Store what the salts of users that do not exist are made of, if the cluster has none and a listener offers
    SCRAM."""
    offered = {name for logins in broker.socket_server.logins.values() for name in logins.offer.mechanisms}
    if offered.isdisjoint(HASHES) or broker.settings.pykafkad_sasl_scram_secret:
        return
    changes = [(TYPE_BROKER, "", [(SECRET, SET, urandom(SECRET_BYTES).hex())])]
    broker.controller.submit(events.AlterConfigs(_NoAnswer(), changes, incremental=True))


class _NoAnswer:
    """A token for which nobody waits."""

    __slots__ = ()

    def deliver(self, message: object) -> None:
        """Nobody waits."""


def _is_stored(image: Image, name: str, password: str, mechanism: str) -> bool:
    record = credentials.find(image, mechanism, name)
    if record is None:
        return False
    salted = _salted(password, mechanism, bytes(record.salt), record.iterations)
    keys = credentials.keys(credentials.NUMBERS[mechanism], salted)
    return keys == (bytes(record.stored_key), bytes(record.server_key))


def _salted(password: str, mechanism: str, salt: bytes, iterations: int) -> bytes:
    import hashlib

    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode("utf-8", "surrogateescape"), salt, iterations)
