"""Names out of certificates: the subject as Java prints it, and the rules that make a principal of it.

Java gives Kafka a subject as RFC 2253 writes it (`X500Principal.getName`): the last part first, nine attributes by
their keywords, every other one by its object identifier and its encoding in hexadecimal. ACLs and quotas name
principals by this text, so it must be the same to the letter. `ssl.principal.mapping.rules` (KIP-371) shortens it."""

from __future__ import annotations

import re
from functools import partial

from pykafkad.settings import java_replacements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""The attributes that RFC 2253 names."""

_OBJECT_IDENTIFIER = 0x06
_TEXT_TAGS = frozenset((0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E))
"""UTF8String, PrintableString, TeletexString, IA5String, GeneralString, BMPString."""

_ESCAPED = frozenset(',=+<>#;"\\')
_EXPLICIT_VERSION = 0xA0
_HOST_NAME = 0x82
_EXTENSIONS = 0xA3
_ALTERNATIVE_NAMES = bytes.fromhex("551d11")


def subject(certificate: bytes) -> str:
    """The subject of a certificate (DER) as RFC 2253 text. Raises ValueError for what is no certificate."""
    parts = _parts(certificate)
    # The version is there or not; before the subject come serial number, signature, issuer and validity.
    index = 5 if parts and parts[0][0] == _EXPLICIT_VERSION else 4
    if len(parts) <= index:
        raise ValueError("a certificate without a subject")
    return name_text(parts[index][1])


def alternative_names(certificate: bytes) -> frozenset[tuple[int, bytes]]:
    """The subject's alternative names of a certificate (DER): kind and content of each. Raises ValueError."""
    try:
        for tag, content in _parts(certificate):
            if tag != _EXTENSIONS:
                continue
            _, extensions, _ = _value(content, 0)
            for _, extension in _values(extensions):
                fields = list(_values(extension))
                if fields[0][1] == _ALTERNATIVE_NAMES:
                    _, names, _ = _value(fields[-1][1], 0)
                    return frozenset(_values(names))
    except IndexError:
        raise ValueError("a certificate with an extension that ends early") from None
    return frozenset()


def host_names(certificate: bytes) -> list[str]:
    """The host names of a certificate (DER) in lower case, such as `*.example.com`. Raises ValueError."""
    found = sorted(content for kind, content in alternative_names(certificate) if kind == _HOST_NAME)
    return [content.decode("ascii", "replace").lower() for content in found]


def _parts(certificate: bytes) -> list[tuple[int, bytes]]:
    """The fields of what the authority signed."""
    try:
        _, signed, _ = _value(certificate, 0)
        _, fields, _ = _value(signed, 0)
        return list(_values(fields))
    except IndexError:
        raise ValueError("a certificate that ends early") from None


def name_text(name: bytes) -> str:
    """The content of a Name (DER, without its own tag and length) as RFC 2253 text. Raises ValueError."""
    try:
        relative = ["+".join(_attribute(value) for _, value in _values(names)) for _, names in _values(name)]
    except IndexError:
        raise ValueError("a name that ends early") from None
    return ",".join(reversed(relative))


def _attribute(content: bytes) -> str:
    tag, identifier, position = _value(content, 0)
    if tag != _OBJECT_IDENTIFIER:
        raise ValueError("an attribute without a type")
    dotted = _dotted(identifier)
    keyword = _KEYWORDS.get(dotted)
    tag, value, _ = _value(content, position)
    if keyword is None or tag not in _TEXT_TAGS:
        return f"{keyword or dotted}=#{content[position:].hex()}"
    return f"{keyword}={_escaped(value.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    """`text` with RFC 2253's escapes; blanks at either end count, too."""
    first = len(text) - len(text.lstrip(" \r"))
    end = len(text.rstrip(" \r"))
    return "".join(
        f"\\{each}" if each in _ESCAPED or not first <= index < end else "\\00" if each == "\0" else each
        for index, each in enumerate(text)
    )


def _dotted(identifier: bytes) -> str:
    numbers = []
    number = 0
    for byte in identifier:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _values(content: bytes) -> Iterator[tuple[int, bytes]]:
    """(tag, content) of each value that stands in `content`."""
    position = 0
    while position < len(content):
        tag, value, position = _value(content, position)
        yield tag, value


def _value(data: bytes, position: int) -> tuple[int, bytes, int]:
    """Tag and content of the DER value at `position`, and where it ends. Raises IndexError where it is cut."""
    tag, length = data[position], data[position + 1]
    position += 2
    if length & 0x80:
        count = length & 0x7F
        length = int.from_bytes(data[position : position + count], "big")
        position += count
    if position + length > len(data):
        raise IndexError
    return tag, data[position : position + length], position + length


class InvalidRule(ValueError):
    """`ssl.principal.mapping.rules` has a rule that is none; `str()` says which and why."""


class PrincipalRules:
    """The rules of `ssl.principal.mapping.rules`, of which the first that fits makes the name.

    A rule is `DEFAULT` (the subject as it is) or `RULE:pattern/replacement/` with L or U at its end for lower or upper
    case. The pattern must match the whole subject, `$1` in the replacement is the pattern's first group, and a slash
    in either is written with a backslash. Raises InvalidRule."""

    __slots__ = ("_rules", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._rules = list(_rules(text.strip()))

    def name(self, subject: str) -> str | None:
        """The name for a certificate with this subject; None where no rule fits."""
        for rule in self._rules:
            if rule is None:
                return subject
            pattern, replacement, case = rule
            if pattern.fullmatch(subject):
                name = pattern.sub(partial(java_replacements.filled, replacement), subject)
                return name.lower() if case == "L" else name.upper() if case == "U" else name
        return None

    def __repr__(self) -> str:
        return f"PrincipalRules({self._text})"


_RULE = re.compile(r"RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)\s*(?:,|$)", re.DOTALL)
_DEFAULT = re.compile(r"(?:DEFAULT)?\s*(?:,|$)")


def _rules(text: str) -> Iterator[tuple[re.Pattern[str], list[str | int], str] | None]:
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        found = _DEFAULT.match(text, position)
        if found is not None:
            if found.group().startswith("DEFAULT"):
                yield None
        else:
            found = _RULE.match(text, position)
            if found is None:
                raise InvalidRule(
                    f"{text[position:]!r} does not begin with DEFAULT or with RULE:pattern/replacement/ and L, U or "
                    "nothing behind it"
                )
            yield _rule(*found.groups())
        position = found.end()


def _rule(expression: str, replacement: str, case: str) -> tuple[re.Pattern[str], list[str | int], str]:
    try:
        pattern = java_replacements.compiled(expression)
        return pattern, list(java_replacements.pieces(replacement, pattern, may_lack_groups=True)), case
    except ValueError as error:
        raise InvalidRule(str(error)) from None
