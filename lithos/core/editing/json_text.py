"""JSON with positions: what a text holds, and where; for edits that keep every other character.

Three dialects: `json` (RFC 8259), `jsonc` (also comments and trailing commas, as editors have them) and
`json5` (also keys without quotes, single quotes, and its numbers and escapes; https://spec.json5.org).
Reading takes time in proportion to the text, and at most `DEEPEST` nested containers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, Literal

from attrs import field, frozen

Dialect = Literal["json", "jsonc", "json5"]
DEEPEST: Final = 100
#: Digits of a whole number that is read exactly; making a longer one takes longer than in proportion.
_LONGEST_WHOLE: Final = 300

_SPACE: Final = r"[ \t\r\n]++"
_SPACE5: Final = r"[ \t\r\n\v\f\u00a0\ufeff\u2028\u2029]++"
_COMMENT: Final = r"//[^\r\n]*+|/\*(?s:.*?)\*/"
_STRING: Final = r'"(?:[^"\\\x00-\x1f]++|\\["\\/bfnrtu])*+"'
_STRING5: Final = r'"(?:[^"\\\r\n]++|\\(?:\r\n|(?s:.)))*+"' + "|" + r"'(?:[^'\\\r\n]++|\\(?:\r\n|(?s:.)))*+'"
_NUMBER: Final = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.])"
_NUMBER5: Final = (
    r"[+-]?(?:Infinity|NaN|0[xX][0-9a-fA-F]++|(?:(?:0|[1-9][0-9]*+)(?:\.[0-9]*+)?|\.[0-9]++)"
    r"(?:[eE][+-]?[0-9]++)?)(?![\w.$])"
)
_WORD: Final = r"[^\W\d][\w$]*+|\$[\w$]*+"


def _tokens_of(space: str, comment: str, string: str, number: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What is skipped before a token, and a token with that."""
    skipped = f"(?:{space}|{comment})*+" if comment else f"(?:{space})*+"
    kinds = rf"(?P<mark>[{{}}\[\]:,])|(?P<string>{string})|(?P<number>{number})|(?P<word>{_WORD})|(?P<end>\Z)"
    return re.compile(skipped), re.compile(f"{skipped}(?:{kinds})")


_TOKENS: Final = {
    "json": _tokens_of(_SPACE, "", _STRING, _NUMBER),
    "jsonc": _tokens_of(_SPACE, _COMMENT, _STRING, _NUMBER),
    "json5": _tokens_of(_SPACE5, _COMMENT, _STRING5, _NUMBER5),
}
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r\n|(?s:.))")
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_CONTINUED: Final = frozenset({"\r\n", "\n", "\r", "\u2028", "\u2029"})
_CONSTANTS: Final = {"true": True, "false": False, "null": None}


class InvalidText(ValueError):
    """The text is not what it should be; `line` and `column` count from 1."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {reason}")
        self.reason = reason
        self.line = line
        self.column = column

    @classmethod
    def at(cls, text: str, offset: int, reason: str) -> InvalidText:
        """The refusal for an offset of the text."""
        begin = text.rfind("\n", 0, offset) + 1
        return cls(reason, text.count("\n", 0, offset) + 1, offset - begin + 1)


@frozen
class Member:
    """A key and its value; `comma` is the offset behind the comma after it, None without one."""

    key: str
    start: int
    value: Node
    comma: int | None = None

    @property
    def end(self) -> int:
        """Behind the value, without a comma."""
        return self.value.end


@frozen
class Node:
    """A value at `start` up to `end`: the members of an object, the items of an array, or a `scalar`.

    A number is the text of it, so that no digit counts as another; `kind` tells it from a string.
    """

    kind: Literal["object", "array", "string", "number", "constant"]
    start: int
    end: int
    members: Sequence[Member] = ()
    items: Sequence[Node] = ()
    scalar: Any = field(default=None)

    def named(self, key: str) -> list[Member]:
        """The members of this key: more than one where a text has it twice."""
        return [member for member in self.members if member.key == key]

    def plain(self) -> Any:
        """The value as Python has it; of keys that are there twice the last, as every client reads it."""
        if self.kind == "object":
            return {member.key: member.value.plain() for member in self.members}
        if self.kind == "array":
            return [item.plain() for item in self.items]
        return _value_of(self.scalar) if self.kind == "number" else self.scalar

    def exact(self) -> Any:
        """The value for comparing: order, numbers as they are spelled, and keys that are there twice."""
        if self.kind == "object":
            return ("object", tuple((member.key, member.value.exact()) for member in self.members))
        if self.kind == "array":
            return ("array", tuple(item.exact() for item in self.items))
        return (self.kind, self.scalar)


def read_json(text: str, dialect: Dialect) -> Node | None:
    """What the text holds; None for nothing but space and comments. Raises `InvalidText`."""
    reader = _Reader(text, dialect)
    if reader.kind == "end":
        return None
    node = reader.value(0)
    if reader.kind != "end":
        raise reader.refuse("something follows the end of the document")
    return node


def decode_string(raw: str) -> str:
    """The characters of a string in its quotes, with all escapes that any dialect has."""
    if "\\" not in raw:
        return raw[1:-1]
    decoded = _ESCAPE.sub(lambda found: decode_escape(found[1]), raw[1:-1])
    # Two escapes make one character beyond the first 65,536.
    return decoded.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def decode_escape(escape: str) -> str:
    """What stands behind a backslash, as a character, or half of one."""
    if len(escape) > 1 and escape[0] in "ux":
        return chr(int(escape[1:], 16))
    return "" if escape in _CONTINUED else _ESCAPED.get(escape, escape)


class _Reader:
    """The token at hand (its `kind`, `text`, `start` and `end`), and the values that begin with it."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self._source = text
        self._dialect = dialect
        self._skipped, self._tokens = _TOKENS[dialect]
        self.kind, self.text, self.start = "", "", 0
        self.end = 1 if text.startswith("\ufeff") else 0
        self._advance()

    def refuse(self, reason: str) -> InvalidText:
        """The refusal of the token."""
        return InvalidText.at(self._source, self.start, reason)

    def value(self, depth: int) -> Node:
        """The value that begins with the token."""
        kind, text, start, end = self.kind, self.text, self.start, self.end
        if kind == "string":
            node = Node("string", start, end, scalar=decode_string(text))
        elif kind == "number":
            node = Node("number", start, end, scalar=text)
        elif text in ("{", "["):
            if depth >= DEEPEST:
                raise self.refuse(f"more than {DEEPEST} values inside of each other")
            self._advance()
            return self._object(start, depth) if text == "{" else self._array(start, depth)
        elif text in _CONSTANTS:
            node = Node("constant", start, end, scalar=_CONSTANTS[text])
        else:
            raise self.refuse("the text ends here" if kind == "end" else "a value should be here")
        self._advance()
        return node

    def _object(self, start: int, depth: int) -> Node:
        members: list[Member] = []
        while self.text != "}":
            kind, key, at = self.kind, self.text, self.start
            if kind != "string" and not (kind == "word" and self._dialect == "json5"):
                raise self.refuse("a key in double quotes should be here")
            self._advance()
            if self.text != ":":
                raise self.refuse("a colon should be here")
            self._advance()
            value = self.value(depth + 1)
            name = decode_string(key) if kind == "string" else key
            members.append(Member(name, at, value, self._comma("}")))
        return Node("object", start, self._close(), members=members)

    def _array(self, start: int, depth: int) -> Node:
        items: list[Node] = []
        while self.text != "]":
            items.append(self.value(depth + 1))
            self._comma("]")
        return Node("array", start, self._close(), items=items)

    def _comma(self, closing: str) -> int | None:
        if self.text != ",":
            if self.text != closing:
                raise self.refuse(f"a comma or {closing} should be here")
            return None
        end = self.end
        self._advance()
        if self.text == closing and self._dialect == "json":
            raise self.refuse("no comma may stand before the end of a list")
        return end

    def _close(self) -> int:
        end = self.end
        self._advance()
        return end

    def _advance(self) -> None:
        found = self._tokens.match(self._source, self.end)
        if found is None:
            skipped = self._skipped.match(self._source, self.end)
            self.start = self.end if skipped is None else skipped.end()
            raise self.refuse(self._why())
        self.kind = str(found.lastgroup)
        self.text = found[self.kind]
        self.start, self.end = found.span(self.kind)

    def _why(self) -> str:
        begin = self._source[self.start : self.start + 2]
        if begin in ("//", "/*"):
            is_known = self._dialect != "json"
            return "this comment does not end" if is_known else "this file cannot have comments"
        if begin[:1] in ('"', "'"):
            return "this string does not end, or has a character that must be escaped"
        return "this is not JSON"


def _value_of(spelled: str) -> int | float | str:
    """The number: whole ones exactly, hexadecimal ones as they are spelled."""
    if "x" in spelled or "X" in spelled:
        return spelled
    is_whole = len(spelled) <= _LONGEST_WHOLE and spelled.lstrip("+-").isdecimal()
    return int(spelled) if is_whole else float(spelled)
