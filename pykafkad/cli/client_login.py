"""How a command logs in, by the options of `client_properties.read`: by kafka-python's mechanisms, or by those that it
lacks."""

from __future__ import annotations

import contextlib
from functools import partial

from pykafkad.cli import client_properties
from pykafkad.cli.login import Login
from pykafkad.cli.output import Failure
from pykafkad.sasl.offer import GSSAPI, MECHANISMS, OAUTHBEARER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


@contextlib.contextmanager
def logging_in(security: dict[str, Any]) -> Iterator[Callable[[str], Login] | None]:
    """How to log in at a host; None without a login. `security` are kafka-python's options afterwards, and it knows
    the mechanism until the block ends. Raises `Failure` for a login that can't be."""
    own = {name: security.pop(name) for name in client_properties.OWN if name in security}
    if not str(security.get("security_protocol", "")).startswith("SASL"):
        yield None
        return
    from kafka.net.sasl import get_sasl_mechanism, register_sasl_mechanism

    mechanism = security["sasl_mechanism"]
    if mechanism not in MECHANISMS:
        raise Failure(f"sasl.mechanism must be one of {', '.join(MECHANISMS)}, not {mechanism}", 2)
    usual = get_sasl_mechanism(mechanism)
    made: Callable[..., Any] = usual
    user = security.get("sasl_plain_username")
    if mechanism == OAUTHBEARER:
        from pykafkad.cli import token_login

        user = own.get("token_client") or token_login.subject(own.get(client_properties.UNSIGNED, {}))
        security["sasl_oauth_token_provider"] = token_login.provider(_tokens(own, user))
    elif mechanism == GSSAPI:
        from pykafkad.cli.kerberos_login import KerberosLogin

        user, made = own.get("principal", "the ticket's owner"), partial(KerberosLogin, own)
    elif "sasl_plain_password" not in security:
        raise Failure(f"the login of {user} needs sasl.password, or sasl.jaas.config", 2)
    elif client_properties.BY_TOKEN in own:
        from pykafkad.cli.token_scram import TokenScram

        made = TokenScram
    register_sasl_mechanism(mechanism, made, overwrite=True)
    try:
        yield lambda host: Login(user, mechanism, made(host=host, **security))
    finally:
        register_sasl_mechanism(mechanism, usual, overwrite=True)


def _tokens(own: dict[str, Any], user: str) -> Callable[[], str]:
    """What gets a token for each login. Raises `Failure`, when it is called, if there is none."""
    from pykafkad.cli import token_login

    get = token_login.source(own if "token_url" in own else own[client_properties.UNSIGNED])

    def token() -> str:
        try:
            return get()
        except OSError as error:
            # Without what may be a login.
            head, _, address = own["token_url"].rpartition("@")
            url = f"{head.partition('//')[0]}//{address}" if "//" in head else address
            raise Failure(f"the token end point {url} gives {user} no token: {error}") from None

    return token
