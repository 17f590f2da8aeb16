"""PLAIN (RFC 4616): the client sends its name and its password. Only for listeners that encrypt, or for tests."""

from __future__ import annotations

from hmac import compare_digest

from pykafkad.sasl.step import DONE, REFUSED, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NOBODYS_PASSWORD = b"\0"
"""A password cannot hold this character, as it ends the fields of a token."""


class Plain:
    """One exchange. `user` is the name of who has logged in."""

    __slots__ = ("_check", "_passwords", "may_block", "user")

    expires_ms = None
    """A password does not expire."""

    is_by_token = False
    """Delegation tokens log in by SCRAM."""

    def __init__(self, passwords: Mapping[str, bytes], check: Callable[[str, str], bool] | None = None) -> None:
        """`passwords` are those of all users, in UTF-8. `check(user, password)` says in their place who may log in; it
        may wait for others."""
        self._passwords = passwords
        self._check = check
        self.may_block = check is not None
        self.user = ""

    def step(self, token: bytes) -> Step:
        """Takes the only token: an authorization id, a name and a password, with a zero byte between them."""
        fields = token.decode("utf-8", "replace").split("\0", 3)
        if len(fields) != 3:
            return _refused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(fields)}")
        authorization_id, user, password = fields
        if not user:
            return _refused("Authentication failed: username not specified")
        if not password:
            return _refused("Authentication failed: password not specified")
        if not (self._is_right(user, password) if self._check is None else self._check(user, password)):
            return _refused("Authentication failed: Invalid username or password")
        if authorization_id not in ("", user):
            return _refused(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.user = user
        return Step(DONE)

    def _is_right(self, user: str, password: str) -> bool:
        expected = self._passwords.get(user)
        is_equal = compare_digest(password.encode(), _NOBODYS_PASSWORD if expected is None else expected)
        return expected is not None and is_equal


def _refused(problem: str) -> Step:
    return Step(REFUSED, problem=problem)
