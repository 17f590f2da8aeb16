"""A Python callable that decides who logs in, in the place of Kafka's callback handler classes, which are Java.

The setting `pykafkad.sasl.callback` names it as `module:function`: for all listeners, for one
(`listener.name.<listener>.pykafkad.sasl.callback`), or for one mechanism of a listener
(`listener.name.<listener>.plain.pykafkad.sasl.callback`). It is called with the mechanism, the user and the secret that
the client sent, beside the loop, so that it may ask somebody else; other logins wait for it meanwhile.

* PLAIN: `function("PLAIN", user, password)` returns True for who may log in.
* SCRAM: `function("SCRAM-SHA-256", user, None)` returns the user's password, or None if there is no such user.
* OAUTHBEARER: `function("OAUTHBEARER", None, token)` returns the name of who logs in, or a pair of the name and the end
  of the token in milliseconds since 1970, or None if the token does not count.

Whatever else it returns, and an exception, refuses the login. The broker's log then says so, without the secret.
"""

from __future__ import annotations

from pykafkad.errors import ConfigError
from pykafkad.sasl.compact_jwt import InvalidToken
from pykafkad.sasl.oauthbearer import Token
from pykafkad.sasl.scram import HASHES, USUAL_ITERATIONS, Credential, credential, pretended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Callback:
    """The callable of one mechanism."""

    __slots__ = ("_function", "_mechanism", "_name", "_tell")

    def __init__(self, mechanism: str, name: str, text: str, tell: Callable[[str], object]) -> None:
        """`name` is the whole name of the setting, `text` its value. `tell` takes what is wrong with the callable, for
        the broker's log. Raises ConfigError if there is no such callable."""
        self._mechanism = mechanism
        self._name = f"{name}={text}"
        self._function = _load(name, text)
        self._tell = tell

    def may_log_in(self, user: str, password: str) -> bool:
        """Whether a user of PLAIN may log in."""
        found = self._call(user, password)
        if not isinstance(found, bool | None):
            self._wrong(found, "True or False")
        return found is True

    def credential(self, user: str, secret: bytes) -> Credential | None:
        """The credential of a user of SCRAM; None if there is no such user. The salt is made of `secret`, as that of
        users who do not exist, and both take the same time."""
        found = self._call(user, None)
        if found is not None and not isinstance(found, str):
            self._wrong(found, "a password or None")
            found = None
        salt = pretended(HASHES[self._mechanism], user, secret).salt
        made = credential(self._mechanism, found or "", salt, USUAL_ITERATIONS)
        return made if found else None

    def validate(self, text: str) -> Token:
        """Whose token it is, and until when. Raises InvalidToken."""
        found = self._call(None, text)
        name, expires_ms = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
        if isinstance(name, str) and name and (expires_ms is None or type(expires_ms) is int):
            return Token(name, expires_ms)
        if found is not None:
            self._wrong(found, "a name, a name and a time, or None")
        raise InvalidToken(f"{self._name} does not accept it")

    def _call(self, user: str | None, secret: str | None) -> Any:
        try:
            return self._function(self._mechanism, user, secret)
        except Exception as error:
            # The text of the exception may hold the secret.
            self._tell(f"{self._name} raised {type(error).__name__}{_place(error)}")
            return None

    def _wrong(self, found: object, expected: str) -> None:
        self._tell(
            f"{self._name} returned a value of type {type(found).__name__} for {self._mechanism}, not {expected}"
        )


def _load(name: str, text: str) -> Callable[[str, str | None, str | None], Any]:
    from importlib import import_module

    module_name, colon, function_name = text.partition(":")
    if not (module_name and colon and function_name):
        raise ConfigError(f"{name}: {text} is not of the form module:function")
    try:
        module = import_module(module_name)
    except Exception as error:
        raise ConfigError(f"{name}: {module_name} cannot be imported: {type(error).__name__}: {error}") from None
    function = getattr(module, function_name, None)
    if not callable(function):
        raise ConfigError(f"{name}: {module_name} has no function {function_name}")
    found: Callable[[str, str | None, str | None], Any] = function
    return found


def _place(error: Exception) -> str:
    """Where the exception came from."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
