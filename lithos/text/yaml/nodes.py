"""Conversion of YAML text to nodes, of nodes to JSON-compatible values, and back.

Hostile files are safe to read.

The reader uses nodes from libyaml's composer, because nodes contain the position and source text of each
value. Written values read back the same with every YAML 1.1 and 1.2 reader.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import yaml
from attrs import frozen
from yaml.constructor import SafeConstructor
from yaml.reader import ReaderError
from yaml.resolver import Resolver

from lithos.kernel.values.times import format_time

#: Maximum nesting depth of collections. The C composer has no limit, so deep nesting would overflow its
#: stack.
MAX_DEPTH: Final = 100
#: Maximum number of values in one frontmatter after alias expansion ("billion laughs"). A long text counts as
#: several values.
MAX_VALUES: Final = 200_000
#: Maximum number of characters of a number. Longer numbers are treated as text, because Python cannot write
#: numbers of more than 4,300 digits.
LONGEST_NUMBER: Final = 100

_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = _TAG + "merge"
_NULL: Final = _TAG + "null"
# A text that does not match cannot nest deeper than about 300 levels, because each block level needs a new
# column.
_MAY_NEST_DEEPLY: Final = re.compile(r"^ {64}|(?:[-?:][ \t]+){32}", re.MULTILINE)
_CONSTRUCTOR: Final = SafeConstructor()


class UnreadableNote(Exception):
    """Raised when Lithos cannot read a file as a note.

    `reason` gives the cause and how to fix the file by hand.

    `line` is a line number in the file, counted from 1. For an error in the whole frontmatter, `line` is the
    first line of the frontmatter.
    """

    def __init__(self, reason: str, line: int = 2) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


def _compose(source: str) -> yaml.MappingNode | None:
    _refuse_deep_nesting(source)
    loader = yaml.CSafeLoader(source)
    try:
        root = loader.get_single_node()
    except yaml.YAMLError as error:
        raise _explain(error, source) from error
    finally:
        loader.dispose()
    if root is None or isinstance(root, yaml.MappingNode):
        return root
    raise UnreadableNote("the frontmatter is not a mapping; write `key: value` lines between the `---` lines")


def _refuse_deep_nesting(source: str) -> None:
    if source.count("[") + source.count("{") < 64 and not _MAY_NEST_DEEPLY.search(source):
        return
    try:
        if line_nesting_deeper(source, MAX_DEPTH) is not None:
            raise _too_deep()
    except yaml.YAMLError as error:
        raise _explain(error, source) from error


def line_nesting_deeper(source: str, most: int) -> int | None:
    """Return the number of the first line on which collections nest deeper than `most`, or None.

    Raises `YAMLError`.
    """
    depth = 0
    for event in yaml.parse(source, yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > most:
                return int(getattr(event.start_mark, "line", 0)) + 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return None


def _too_deep() -> UnreadableNote:
    return UnreadableNote(f"the frontmatter nests deeper than {MAX_DEPTH} levels; flatten it")


def _explain(error: yaml.YAMLError, source: str) -> UnreadableNote:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        line = error.problem_mark.line + 2  # The mark counts from 0, after the opening `---`.
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        return UnreadableNote(f"line {line} is malformed YAML ({problem}); correct it in an editor", line)
    summary = " ".join(str(error).split())
    line = 2
    if isinstance(error, ReaderError):  # YAML forbids this character. Its position is counted in UTF-8 bytes.
        line += source.encode("utf-8", "surrogatepass").count(b"\n", 0, error.position)
    return UnreadableNote(f"the frontmatter is malformed YAML ({summary}); correct it in an editor", line)


def is_null(node: yaml.Node) -> bool:
    """Return whether the value is empty, `null` or `~`."""
    return node.tag == _NULL


def is_integer(node: yaml.Node) -> bool:
    """Return whether the value is a YAML integer. A text that looks like an integer is not one."""
    return node.tag == _TAG + "int"


class ValueReader:
    """Reader for nodes that were composed from one `source`.

    The reader counts values, so that aliases cannot expand without limit.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._left = MAX_VALUES

    def _charge(self, cost: int, depth: int = 0) -> None:
        self._left -= cost
        if self._left < 0:
            raise UnreadableNote(f"the frontmatter expands to more than {MAX_VALUES} values; remove aliases")
        if depth > MAX_DEPTH:
            raise _too_deep()

    def text(self, node: yaml.Node) -> str:
        """Return the text of a scalar, or the source text of a collection on one line."""
        start, end = node.start_mark.index, node.end_mark.index
        self._charge(1 + (end - start) // 64)
        if isinstance(node, yaml.ScalarNode):
            return str(node.value)
        return " ".join(self._source[start:end].split())

    def pairs(self, node: yaml.MappingNode, depth: int = 0) -> dict[str, yaml.Node]:
        """Return the value nodes by key text, with merge keys (`<<`) expanded.

        If keys are equal, the last one is used.
        """
        self._charge(1 + len(node.value), depth)
        merged: dict[str, yaml.Node] = {}
        own: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                for mapping in _merge_sources(value):
                    merged |= self.pairs(mapping, depth + 1)
            else:
                own[self.text(key)] = value
        return merged | own if merged else own

    def value(self, node: yaml.Node, depth: int = 0) -> Any:
        """Return the node as a JSON-compatible value. Dates and non-finite numbers become text."""
        if isinstance(node, yaml.ScalarNode):
            self._charge(1 + len(node.value) // 64, depth)
            return _scalar_value(node)
        if isinstance(node, yaml.MappingNode):
            return {key: self.value(child, depth + 1) for key, child in self.pairs(node, depth).items()}
        self._charge(1, depth)
        return [self.value(child, depth + 1) for child in node.value]


@frozen(kw_only=True)
class YamlMapping:
    """A composed frontmatter: its text, its root node (None if empty) and the reader of its values."""

    source: str
    root: yaml.MappingNode | None
    values: ValueReader

    @property
    def nodes(self) -> dict[str, yaml.Node]:
        """Return the value node of each top-level key, with merge keys expanded."""
        return self.values.pairs(self.root) if self.root is not None else {}


def read_mapping(source: str) -> YamlMapping:
    """Compose `source`. Raises `UnreadableNote` for malformed YAML and for YAML that is not a mapping."""
    return YamlMapping(source=source, root=_compose(source), values=ValueReader(source))


def is_merge(key: yaml.Node) -> bool:
    """Return whether the key is the merge key `<<`."""
    return key.tag == _MERGE


def _merge_sources(value: yaml.Node) -> Iterator[yaml.MappingNode]:
    nodes = reversed(value.value) if isinstance(value, yaml.SequenceNode) else (value,)
    return (node for node in nodes if isinstance(node, yaml.MappingNode))


def _scalar_value(node: yaml.ScalarNode) -> Any:
    convert = _CONVERSIONS.get(node.tag)
    if convert is None:
        return node.value
    try:
        return convert(node)
    except (ValueError, OverflowError):  # Keep the text of invalid values (2024-02-30, !!int x).
        return node.value


def _integer(node: yaml.ScalarNode) -> int | str:
    if ":" in node.value or len(node.value) > LONGEST_NUMBER:  # YAML 1.1 reads the time 12:30 as 750.
        return str(node.value)
    number: int = _CONSTRUCTOR.construct_yaml_int(node)
    return number


def _number(node: yaml.ScalarNode) -> float | str:
    if len(node.value) > LONGEST_NUMBER:
        return str(node.value)
    number: float = _CONSTRUCTOR.construct_yaml_float(node)
    return number if math.isfinite(number) and ":" not in node.value else str(node.value)


def _date(node: yaml.ScalarNode) -> str:
    if not SafeConstructor.timestamp_regexp.match(node.value):
        return str(node.value)
    text: str = _CONSTRUCTOR.construct_yaml_timestamp(node).isoformat()
    return text


_CONVERSIONS: Final[dict[str, Callable[[yaml.ScalarNode], Any]]] = {
    _NULL: lambda node: None,
    _TAG + "bool": lambda node: SafeConstructor.bool_values.get(node.value.lower(), node.value),
    _TAG + "int": _integer,
    _TAG + "float": _number,
    _TAG + "timestamp": _date,
}


_resolve: Final[Callable[[type[yaml.Node], str, tuple[bool, bool]], str]] = Resolver().resolve
_TEXT_TAG: Final = "tag:yaml.org,2002:str"
# Characters that libyaml accepts only if escaped, and line breaks, which would be folded in quoted text.
_ESCAPED: Final = re.compile(
    "[^\t\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_PLAIN: Final = re.compile(r"[\w/.(][^\t\[\]{},]*", re.DOTALL)
# Numbers and booleans of YAML 1.2 (Obsidian) and of other YAML 1.1 readers, which PyYAML's resolver treats as
# text.
_AMBIGUOUS: Final = re.compile(
    r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?|0o[0-7]+|0x[0-9a-fA-F]+|[yYnN]|\d[\d_:.]*", re.ASCII
)
_LONGEST_PLAIN_KEY: Final = 900  # libyaml limits a simple key to 1024 characters.

_SCALARS: Final = (str, bool, int, float, datetime, type(None))


def is_scalar(value: Any) -> bool:
    """Return whether a value fits on one line: text, number, boolean, time or null."""
    return isinstance(value, _SCALARS)


def write_text(text: str, style: str | None = None) -> str:
    """Return `text` as a one-line scalar.

    `style` (`'`, `"`, else plain) is used if the text reads back the same.
    """
    if _ESCAPED.search(text) or style == '"':
        return '"' + _ESCAPED.sub(_escape, text.replace("\\", "\\\\").replace('"', '\\"')) + '"'
    if style != "'" and _is_plain(text):
        return text
    return "'" + text.replace("'", "''") + "'"


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if character == "\n":
        return "\\n"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_plain(text: str) -> bool:
    return (
        _PLAIN.fullmatch(text) is not None
        and ": " not in text
        and " #" not in text
        and text[-1] not in ": "
        and not text.startswith("...")
        and _AMBIGUOUS.fullmatch(text) is None
        and _resolve(yaml.ScalarNode, text, (True, False)) == _TEXT_TAG
    )


def write_inline(value: Any, style: str | None = None) -> str:
    """Return `value` on one line. `style` is the quoting to use: `'`, `"`, "" for plain, None for any."""
    if isinstance(value, str):
        return write_text(value, style)
    if isinstance(value, datetime):
        quote = "'" if style is None else style
        return f"{quote}{format_time(value)}{quote}"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        text = repr(value)  # YAML 1.1 reads 1e-07 as text and 1.0e-07 as a number.
        return text if "." in text else text.replace("e", ".0e", 1)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow_key(key)}: {write_inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(write_inline(item) for item in value) + "]"
    return str(value)


def _flow_key(key: str) -> str:
    text = write_text(key)
    return text if len(text) < _LONGEST_PLAIN_KEY else f"? {text} "


def write_block(value: Any, indent: str, newline: str) -> str:
    """Return a non-empty list or mapping as lines indented by `indent`. Each line ends with `newline`."""
    if isinstance(value, Mapping):
        return "".join(write_entry(key, item, indent, newline) for key, item in value.items())
    return "".join(f"{indent}- {write_inline(item)}{newline}" for item in value)


def write_entry(key: str, value: Any, indent: str, newline: str) -> str:
    """Return `key: value` as whole lines indented by `indent`."""
    name = write_text(key)
    head = f"{indent}{name}:" if len(name) < _LONGEST_PLAIN_KEY else f"{indent}? {name}{newline}{indent}:"
    if is_scalar(value) or not value:
        return f"{head} {write_inline(value)}{newline}"
    return f"{head}{newline}{write_block(value, indent + '  ', newline)}"
