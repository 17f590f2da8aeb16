"""TLS, users and ACLs of a test's broker.

A guarded broker has two listeners: CLIENTS, which encrypts and asks for a login as the test wants it, and CONTROL,
which is plain and bound to 127.0.0.1, by which the test's own calls (`Broker.produce`, `Broker.group`, …) reach it.
Only CLIENTS has users with names, so what ACLs say holds there, and whoever calls at CONTROL may do everything.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pykafkad.cli import acl_words, certificates, start_acls, users as logins
from pykafkad.cli.client_options import NOBODY, Access
from pykafkad.server.listeners import Listener
from pykafkad.settings.authorizer_settings import SUPER_USERS

CLIENTS = "CLIENTS"
CONTROL = "CONTROL"
CONTROL_HOST = "127.0.0.1"
NO_USERS = "client_config: this broker has no users; give it some: Broker(users={...})"
DEFAULT_MECHANISM = "SCRAM-SHA-512"


class Guard(NamedTuple):
    """What a broker asks of its clients; every value can be written as JSON. `tls` are the settings of its
    certificates, `users` are names, passwords and mechanisms, `acls` are entries in words."""

    tls: Mapping[str, str] = {}
    ca_file: str | None = None
    users: Sequence[Sequence[str]] = ()
    acls: Sequence[str] = ()

    @property
    def security_protocol(self) -> str:
        """That of the listener for clients."""
        return f"{'SASL_' if self.users else ''}{'SSL' if self.tls else 'PLAINTEXT'}"

    def listeners(self, host: str, port: int, control_port: int) -> list[Listener]:
        """Those that the broker binds, that for clients first."""
        return [
            Listener(CLIENTS, host, port, None, self.security_protocol),
            Listener(CONTROL, CONTROL_HOST, control_port),
        ]

    def settings(self, listeners: Sequence[Listener], given: Mapping[str, str]) -> dict[str, str]:
        """Those that make a broker ask for it, beside the `given` ones of the test."""
        texts = {
            "listeners": ",".join(f"{each.name}://{each.address()}" for each in listeners),
            "listener.security.protocol.map": ",".join(f"{each.name}:{each.security_protocol}" for each in listeners),
            **self.tls,
        }
        if self.users:
            offered = dict.fromkeys(mechanism for _, _, mechanism in self.users)
            passwords = {name: password for name, password, mechanism in self.users if mechanism == "PLAIN"}
            texts[f"listener.name.{CLIENTS.lower()}.sasl.enabled.mechanisms"] = ",".join(offered)
            texts[f"listener.name.{CLIENTS.lower()}.plain.sasl.jaas.config"] = logins.plain_module(passwords)
        if self.acls:
            texts["authorizer.class.name"] = start_acls.AUTHORIZER
            # Who calls at CONTROL has no name.
            texts[SUPER_USERS] = ";".join(filter(None, (given.get(SUPER_USERS, ""), "User:ANONYMOUS")))
        return texts

    def access(self, user: str | None, mechanism: str | None) -> Access:
        """What a client needs that is one of the users, or the first of them. Raises ValueError."""
        if not self.users:
            if user is not None or mechanism is not None:
                raise ValueError(NO_USERS)
            return NOBODY._replace(ca_file=self.ca_file)
        name = self.users[0][0] if user is None else user
        known = {found: password for of, password, found in self.users if of == name}
        if not known:
            raise ValueError(f"client_config: there is no user {name!r}; there are: {', '.join(self._names())}")
        chosen = mechanism or (DEFAULT_MECHANISM if DEFAULT_MECHANISM in known else next(iter(known)))
        if chosen not in known:
            raise ValueError(f"client_config: {name} logs in by {', '.join(known)}, not by {mechanism}")
        return Access(self.ca_file, name, known[chosen], chosen)

    def _names(self) -> list[str]:
        return sorted({name for name, _, _ in self.users})


def made(
    owner: object, tls: bool, users: Mapping[str, str], acls: Iterable[str], host: str, data: str | None
) -> Guard | None:
    """What the arguments of `Broker` ask for; None if they ask for nothing. Certificates are in the directory `data`,
    or in one of their own, which is removed with their `owner`. Raises ValueError, or ConfigError where the library
    for certificates is missing."""
    if isinstance(acls, str):
        raise TypeError(f"acls: {acls!r} is a text; give a list of entries")
    entries = list(acls)
    for entry in entries:
        try:
            acl_words.parse(entry)
        except ValueError as error:
            raise ValueError(f"acls: {error}") from None
    if entries and not users:
        raise ValueError("acls: they need users, since all clients without a login are the same one")
    found = [each for name, password in users.items() for each in logins.mechanisms_of(name, password)]
    if not (tls or found):
        return None
    if not tls:
        return Guard({}, None, found, entries)
    folder = os.path.abspath(data) if data is not None else _folder_of(owner)
    settings = certificates.provide(folder, [host] if host not in ("", "0.0.0.0", "::") else [])
    return Guard(settings, os.path.join(folder, certificates.CA_FILE), found, entries)


def _folder_of(owner: object) -> str:
    folder = tempfile.mkdtemp(prefix="pykafkad-tls-")
    weakref.finalize(owner, _remove, folder, os.getpid())
    return folder


def _remove(folder: str, process_id: int) -> None:
    """A forked child leaves it to its parent."""
    if os.getpid() == process_id:
        shutil.rmtree(folder, ignore_errors=True)
