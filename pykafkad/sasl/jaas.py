r"""Login modules as JAAS writes them, which is how Kafka's `sasl.jaas.config` names its users.

One entry is a class, a control flag, options and a semicolon: `org...PlainLoginModule required user_alice="secret";`.
The words are those of Java's StreamTokenizer as Kafka sets it up: letters, digits, `.`, `_`, `-` and `$`, not beginning
with a digit, `.` or `-`; or any text in quotes with Java's escapes. `//`, `/* */` and a lone `/` begin comments.

The text holds passwords, so no error quotes any of it.
"""

from __future__ import annotations

from collections import namedtuple

from pykafkad.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FLAGS = ("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL")

LoginModule = namedtuple("LoginModule", ("class_name", "options"))
LoginModule.__doc__ = """One entry: the Java class, and its options by their keys."""

_WORD_STARTS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$")
_DIGITS = frozenset("0123456789")
_OCTAL = frozenset("01234567")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_WORD, _NUMBER, _SIGN, _END = "word", "number", "sign", "end"


def parse(text: str) -> LoginModule:
    """The only entry of a text. Raises ConfigError with what is wrong with its form."""
    tokens = _tokens(text)
    modules = []
    while (first := next(tokens))[0] != _END:
        modules.append(_entry(first, tokens))
    if len(modules) != 1:
        raise ConfigError(f"must hold one login module, and holds {len(modules) or 'none'}")
    return modules[0]


def _entry(first: tuple[str, str], tokens: Iterator[tuple[str, str]]) -> LoginModule:
    kind, class_name = first
    flag_kind, flag = next(tokens)
    if kind != _WORD or flag_kind != _WORD or flag.upper() not in FLAGS:
        raise ConfigError(f"must begin with a login module's class and one of {', '.join(FLAGS).lower()}")
    options: dict[str, str] = {}
    while True:
        kind, key = next(tokens)
        if kind == _SIGN and key == ";":
            return LoginModule(class_name, options)
        if kind == _END:
            raise ConfigError("must end with a semicolon")
        equals, value = next(tokens), ("", "")
        if equals == (_SIGN, "="):
            value = next(tokens)
        if kind != _WORD or value[0] != _WORD:
            raise ConfigError(
                f'option {len(options) + 1} is not key="value"; a value with other signs than letters, digits, '
                "., _, - and $ needs quotes"
            )
        options[key] = value[1]


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Kind and text of each token; `_END` again and again behind the last."""
    position = 0
    while position < len(text):
        character = text[position]
        if character <= " ":
            position += 1
        elif character == "/":
            position = _after_comment(text, position)
        elif character in "\"'":
            value, position = _quoted(text, position)
            yield _WORD, value
        elif character in _DIGITS or character in ".-":
            end = _number_end(text, position)
            yield (_NUMBER, "") if end > position else (_SIGN, character)
            position = max(end, position + 1)
        elif _begins_word(character):
            end = position
            while end < len(text) and (_begins_word(text[end]) or text[end] in _DIGITS or text[end] in ".-"):
                end += 1
            yield _WORD, text[position:end]
            position = end
        else:
            yield _SIGN, character
            position += 1
    while True:
        yield _END, ""


def _begins_word(character: str) -> bool:
    return character in _WORD_STARTS or character >= "\xa0"


def _after_comment(text: str, start: int) -> int:
    if text.startswith("/*", start):
        end = text.find("*/", start + 2)
        return len(text) if end < 0 else end + 2
    ends = [end for end in (text.find("\n", start), text.find("\r", start)) if end >= 0]
    return min(ends, default=len(text))


def _number_end(text: str, start: int) -> int:
    """Where the number that begins at `start` ends; `start` if a lone `-` stands there."""
    end = start + (text[start] == "-")
    if text[start] == "-" and not (end < len(text) and (text[end] in _DIGITS or text[end] == ".")):
        return start
    has_point = False
    while end < len(text) and (text[end] in _DIGITS or (text[end] == "." and not has_point)):
        has_point |= text[end] == "."
        end += 1
    return end


def _quoted(text: str, start: int) -> tuple[str, int]:
    """The text in quotes from `start` on, and where to go on. The end of the line ends it too."""
    quote, parts = text[start], []
    position = start + 1
    while position < len(text) and text[position] not in (quote, "\n", "\r"):
        character = text[position]
        position += 1
        if character == "\\" and position < len(text):
            character = text[position]
            position += 1
            if character in _OCTAL:
                most = 3 if character <= "3" else 2
                digits = character
                while len(digits) < most and position < len(text) and text[position] in _OCTAL:
                    digits += text[position]
                    position += 1
                character = chr(int(digits, 8))
            else:
                character = _ESCAPES.get(character, character)
        parts.append(character)
    closes = position < len(text) and text[position] == quote
    return "".join(parts), position + closes


def quoted(text: str) -> str:
    """`text` in quotes, for an option's value."""
    for sign, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(sign, escape)
    return f'"{text}"'
