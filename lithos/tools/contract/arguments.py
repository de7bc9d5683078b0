"""Tool arguments: one frozen class per tool gives both the JSON Schema and the checked values.

Unknown, missing and wrongly typed arguments are protocol faults (`ArgumentFault`); null, and blank text for
what is optional, count as left out. What is well typed but can never work is a refusal (`InvalidInput`):
below are also the checks of values that need no note.
"""

from __future__ import annotations

import functools
import json
import math
import types
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs
from attrs import frozen

from lithos.core.errors import InvalidInput
from lithos.core.events import TAKING_BACK, TOOL
from lithos.core.limits import JSON_VALUES, TITLE, check_text, holds_more_values
from lithos.core.notes.healing import clean_title
from lithos.core.notes.yaml_nodes import MAX_DEPTH
from lithos.core.text.analysis import normalise
from lithos.core.times import parse_time
from lithos.tools.contract.bounds import NAME, PATH, Bound


@frozen
class ToolSpec:
    """One tool as `tools/list` shows it.

    `input_schema` is a JSON Schema object; the three hints are those of the Model Context Protocol.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    read_only: bool
    destructive: bool
    idempotent: bool


class ArgumentFault(Exception):
    """An argument is unknown, missing or of the wrong type; `message` names it."""

    code: Final = "invalid_input"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UnknownTool(Exception):
    """No tool is called `name`."""

    code: Final = "unknown_tool"

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown tool: '{name}'")
        self.name = name
        self.message = str(self)


A = TypeVar("A")

#: Characters of an array or object that is given as JSON text.
LONGEST_JSON_TEXT: Final = 1024 * 1024
#: The calling agent may be given under this name in every tool, whatever the parameter is called.
_CALLER: Final = "agent"
#: Rows, or characters, to skip in tools that answer in pages.
_OFFSET: Final = "offset"
#: Parameters that name the one note a tool is about, and what takes its path instead; where the tool means
#: another path by that, the second. Of others, such as `to_id`, it is `to_path`.
_SUBJECT: Final = ("id", "node_id")
_PATH, _FROM_PATH = "path", "from_path"
#: The parameter with which the paths of all that is meant begin.
_PREFIX: Final = "path_prefix"
#: Which notes a parameter may name by their path: those that are there, or deleted ones too.
Which = Literal["there", "kept"]
#: The id of the note at a path, which may be deleted where "kept" ones are asked for. Raises `DocNotFound`.
Locate = Callable[[str, Which], Awaitable[str]]


def argument(
    description: str,
    default: Any = attrs.NOTHING,
    *,
    bound: Bound | None = None,
    may_be_blank: bool = False,
    one_of: Sequence[str] = (),
    is_caller: bool = False,
    is_listed: bool = True,
    is_own: bool = False,
    note: Which | None = None,
    also: str | None = None,
) -> Any:
    """A tool parameter; without a default it is required.

    `bound` is how large a value may be: every text, list and object has one. `one_of` only tells clients
    what makes sense: a wrong value is refused by the tool itself. `may_be_blank`: blank text means something,
    such as clearing a value. `is_caller`: names the calling agent, so `agent` stands for it too. What is not
    `is_listed` is accepted, but not shown to clients; what `is_own` is accepted only of Lithos's own commands
    and pages. `note`: the id of a note, for which its path may be given (`note_paths`); the tool always gets
    the id. `also`: another name of the parameter, which clients are not shown; what its own name says next to
    that is the note's path.
    """
    return attrs.field(
        default=default,
        kw_only=True,
        metadata={
            "description": description,
            "may_be_blank": may_be_blank,
            "one_of": tuple(one_of),
            "bound": bound,
            "is_caller": is_caller,
            "is_listed": is_listed and not is_own,
            "is_own": is_own,
            "note": note,
            "also": also,
        },
    )


def note_paths(cls: type[Any]) -> dict[str, str]:
    """By the name of each parameter that is the id of a note: what takes its path instead."""
    names = attrs.fields_dict(cls)
    subject = _FROM_PATH if _PATH in names else _PATH
    return {
        name: subject if name in _SUBJECT else f"{name.removesuffix('_id')}_path"
        for name, attribute in names.items()
        if attribute.metadata["note"] is not None
    }


def one_form(name: str) -> str:
    """The name of an agent as it is kept: without space around it, in the Unicode form NFC."""
    return normalise("NFC", name.strip())


def read_title(title: str) -> str:
    """A title on one line, without markup; raises `InvalidInput` for one of more than 1,000 characters."""
    check_text("title", title, TITLE)
    return clean_title(title)


#: Of the parameter `undo` of tools that `lithos undo` and the console call.
TAKES_BACK: Final = "This takes back what an agent changed."


def source_of(is_undo: bool) -> str:
    """The source of the events of a change."""
    return TAKING_BACK if is_undo else TOOL


def as_command(kind: type[A], given: object, **checked: object) -> A:
    """A command with the values of the arguments of the same names; `checked` stands for what was changed.

    No type checker sees that names and types agree: tests/tools/test_commands.py does.
    """
    kinds: tuple[type, type] = kind, type(given)
    names, read = _common_fields(*kinds, *checked)
    return kind(**dict(zip(names, read(given), strict=False)), **checked)


@functools.cache
def _common_fields(one: type, other: type, *but: str) -> tuple[tuple[str, ...], attrgetter[tuple[Any, ...]]]:
    """The names of the fields of both classes but some, and what reads their values, and two more."""
    names = tuple(
        each for each in attrs.fields_dict(one) if each in attrs.fields_dict(other) and each not in but
    )
    return names, attrgetter(*names, "__class__", "__class__")  # of less than two it would give no tuple


class ArgumentReader:
    """Reads the arguments of one class; the reflection is done once.

    Whatever the class says, `agent` is accepted: for the parameter that names the caller, else for nothing.
    So is `offset`, where the tool answers in pages (`is_paged`), and the path of a note for its id, which
    whoever calls `read` has looked up (`with_ids`).
    """

    def __init__(self, cls: type, *, is_paged: bool = False) -> None:
        self._cls = cls
        self._is_paged = is_paged
        kinds = {name: _KINDS[_kind(hint)] for name, hint in get_type_hints(cls).items()}
        self._readers = {each.name: (*kinds[each.name], each) for each in attrs.fields(cls)}
        #: The parameters that name the calling agent, and those that only Lithos itself may give.
        self.callers = tuple(each.name for each in attrs.fields(cls) if each.metadata["is_caller"])
        self.own = tuple(each.name for each in attrs.fields(cls) if each.metadata["is_own"])
        self._caller = self.callers[0] if self.callers else None
        self._common = ({_CALLER, _OFFSET} if is_paged else {_CALLER}) - self._readers.keys()
        #: By the name of a path: the parameter that it stands for.
        self._paths = {path: name for name, path in note_paths(cls).items()}
        #: The parameters that name namespaces, and whether one begins paths.
        self._namespaces = tuple({"namespace", "namespace_filter"} & self._readers.keys())
        self.has_prefix = _PREFIX in self._readers
        #: By the other name of a parameter: its own.
        self._also = {also: each.name for each in attrs.fields(cls) if (also := each.metadata["also"])}

    @property
    def skips(self) -> bool:
        """True when the tool itself skips what `offset` says."""
        return _OFFSET in self._readers

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        """The input schema, with `offset` where the tool answers in pages. One object for all callers.

        Paths of other notes than the one a tool is about are not shown: the listing has no room for them.
        """
        paths = {name: path for path, name in self._paths.items() if name in _SUBJECT}
        properties: dict[str, Any] = {}
        required: list[str] = []
        for _, kind, each in self._readers.values():
            if not each.metadata["is_listed"]:
                continue
            schema = {**kind, "description": each.metadata["description"]}
            if each.metadata["one_of"]:
                schema["enum"] = list(each.metadata["one_of"])
            if each.default is attrs.NOTHING:
                required += [] if each.name in paths else [each.name]
            elif each.default is not None and each.default != ():
                schema["default"] = each.default
            properties[each.name] = schema
            if each.name in paths:
                told = f"Instead of {each.name}."
                properties[paths[each.name]] = {"type": "string", "description": told}
        if self._is_paged:
            properties.setdefault(_OFFSET, {"type": "integer", "description": "Skip rows."})
        result = {"type": "object", "properties": properties, "additionalProperties": False}
        return {**result, "required": required} if required else result

    def read(self, given: Mapping[str, Any]) -> Any:
        """An instance of the class. Raises `ArgumentFault`, `InvalidInput`."""
        for name in given:
            if name not in self._readers and name not in self._common and name not in self._paths:
                known = ", ".join((*self._readers, *self._paths)) or "none"
                raise ArgumentFault(f"Unknown argument {name[:100]!r}. Known arguments: {known}.")
        given = self._with_caller(given)
        values: dict[str, Any] = {}
        missing: list[str] = []
        for name, (read, _, attribute) in self._readers.items():
            value = given.get(name)
            is_optional = attribute.default is not attrs.NOTHING
            if value is None or (is_optional and _is_blank(value) and not attribute.metadata["may_be_blank"]):
                missing += [] if is_optional else [name]
                continue
            values[name] = read(name, value)
            if attribute.metadata["bound"] is not None:
                attribute.metadata["bound"].check(name, values[name])
        for name, value in values.items():
            attribute = self._readers[name][2]
            is_required_text = attribute.default is attrs.NOTHING and isinstance(value, str)
            if is_required_text and not attribute.metadata["may_be_blank"] and not value.strip():
                raise InvalidInput(f"{name} must not be blank.")
        if missing:
            raise self._missing(missing[0])
        return self._cls(**self._with_one_form(values))

    def _with_one_form(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values, in which "ann" and "ann " are one agent, and so are two Unicode forms of a name.

        Namespaces are in one form as well.
        """
        for name in (_CALLER, *self.callers):
            if isinstance(values.get(name), str):
                values[name] = one_form(values[name])
        for name in self._namespaces:
            value = values.get(name)
            if value is not None:
                many = isinstance(value, tuple)
                values[name] = (
                    tuple(normalise("NFC", each) for each in value) if many else normalise("NFC", value)
                )
        return values

    def renamed(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments with the own names of parameters that were given under their other names.

        An agent that gives both means the note by the own name. Raises `ArgumentFault` where that is named
        by another path too.
        """
        for also, name in self._also.items():
            value = given.get(also)
            if value is None or _is_blank(value):
                given = {key: each for key, each in given.items() if key != also}
                continue
            rest = {key: each for key, each in given.items() if key not in (also, name)}
            subject = given.get(name)
            if subject is not None and not _is_blank(subject):
                if rest.get(_FROM_PATH) not in (None, "", subject):
                    raise ArgumentFault(
                        f"{name} and {_FROM_PATH} both name the note next to {also}. Leave out one of them."
                    )
                rest[_FROM_PATH] = subject
            given = {**rest, name: value}
        return given

    async def with_ids(self, given: Mapping[str, Any], locate: Locate) -> Mapping[str, Any]:
        """The arguments with the ids of notes that are named by their paths.

        Raises `ArgumentFault`, `InvalidInput` also for the path of another note than the id, and as `locate`.
        """
        given = self.renamed(given) if self._also else given
        paths = [path for path in self._paths if given.get(path) is not None and not _is_blank(given[path])]
        for path in paths:
            PATH.check(path, _read_text(path, given[path]))
        for path in paths:
            name = self._paths[path]
            note_id = await locate(given[path], self._readers[name][2].metadata["note"])
            own = given.get(name)
            if own is not None and not _is_blank(own) and own != note_id:
                raise InvalidInput(
                    f"{name} and {path} name two notes: that at {given[path][:200]!r} is {note_id}. "
                    f"Give {name} or {path} alone."
                )
            given = {**given, name: note_id}
        return given

    def _missing(self, name: str) -> ArgumentFault:
        others = {**self._paths, **self._also}
        instead = "".join(f" (or '{other}')" for other, each in others.items() if each == name)
        told = self._readers[name][2].metadata["description"]
        return ArgumentFault(f"Missing argument '{name}'{instead}: {told}")

    def offset(self, given: Mapping[str, Any]) -> int:
        """What to skip. Raises `ArgumentFault`, `InvalidInput`."""
        value = given.get(_OFFSET)
        if value is None or _is_blank(value):
            return 0
        offset = _read_integer(_OFFSET, value)
        if offset < 0:
            raise InvalidInput(f"offset must not be negative; {offset:.0f} is. Leave it out to begin.")
        return offset

    def _with_caller(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments with `agent` under the name that the tool has for it, unless that is given too."""
        agent = given.get(_CALLER)
        if _CALLER not in self._common or agent is None or _is_blank(agent):
            return given
        NAME.check(_CALLER, _read_text(_CALLER, agent))
        if self._caller is None or not _is_blank(given.get(self._caller) or ""):
            return given
        return {**given, self._caller: one_form(agent)}


def _is_blank(value: Any) -> bool:
    return isinstance(value, str) and not value.strip()


def _kind(hint: Any) -> Any:
    """`str | None` -> str, `tuple[str, ...] | None` -> tuple, `dict[str, Any]` -> dict.

    `dict[str, Any] | list[Any]` -> list, which takes both.
    """
    if get_origin(hint) in (Union, types.UnionType):
        *_, hint = [part for part in get_args(hint) if part is not type(None)]
    return get_origin(hint) or hint


def _read_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong_type(name, "text", value)
    _check_characters(name, value)
    return value


def _read_integer(name: str, value: Any) -> int:
    number = _read_number(name, value)
    if not number.is_integer():
        raise _wrong_type(name, "a whole number", value)
    return value if isinstance(value, int) else int(number)


def _read_number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _wrong_type(name, "a number", value)
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise _wrong_type(name, "a number", value) from None


def _read_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong_type(name, "true or false", value)
    return value


def _read_texts(name: str, value: Any) -> tuple[str, ...]:
    value = _parse_json_text(value, list)
    if not isinstance(value, list):
        raise _wrong_type(name, 'a list of texts such as ["a","b"]', value)
    for position, item in enumerate(value, 1):
        if not isinstance(item, str):
            raise ArgumentFault(
                f"Argument '{name}' must be a list of texts; item {position} is {_describe(item)}."
            )
        _check_characters(name, item)
    return tuple(value)


def _read_object(name: str, value: Any) -> dict[str, Any]:
    value = _parse_json_text(value, dict)
    if not isinstance(value, dict):
        raise _wrong_type(name, 'an object such as {"key":"value"}', value)
    _check_nested(name, value)
    return value


def _read_structure(name: str, value: Any) -> dict[str, Any] | list[Any]:
    value = _parse_json_text(value, dict | list)
    if not isinstance(value, dict | list):
        raise InvalidInput(f"{name} must be an object or an array, not {_describe(value)}.")
    _check_nested(name, value)
    return value


def _parse_json_text(value: Any, wanted: type[Any] | types.UnionType) -> Any:
    """JSON text of the wanted type as what it says; all else as it is.

    Some clients encode arrays and objects a second time.
    """
    if not isinstance(value, str) or not value.strip().startswith(("[", "{")):
        return value
    if len(value) > LONGEST_JSON_TEXT or holds_more_values(value.encode("utf-8", "replace"), JSON_VALUES):
        return value
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return parsed if isinstance(parsed, wanted) else value


#: By the kind of a parameter: how its value is read, and its schema.
_KINDS: Mapping[Any, tuple[Callable[[str, Any], Any], Mapping[str, Any]]] = {
    str: (_read_text, {"type": "string"}),
    int: (_read_integer, {"type": "integer"}),
    float: (_read_number, {"type": "number"}),
    bool: (_read_flag, {"type": "boolean"}),
    tuple: (_read_texts, {"type": "array", "items": {"type": "string"}}),
    dict: (_read_object, {"type": "object"}),
    # Takes an array too; `anyOf` with items of no type is more than some clients can read.
    list: (_read_structure, {"type": "object"}),
    # Judged by the tool, which answers with an envelope.
    object: (lambda _, value: value, {"type": "number"}),
}


def _check_nested(name: str, value: Any, depth: int = 0) -> None:
    """Whatever passes can be stored as YAML and as JSON, and read back."""
    if depth > MAX_DEPTH:
        raise InvalidInput(f"{name} nests deeper than {MAX_DEPTH} levels. Flatten it.")
    if isinstance(value, str):
        _check_characters(name, value)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_nested(name, key, depth)
            _check_nested(name, item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check_nested(name, item, depth + 1)
    elif isinstance(value, int | float) and not _is_finite(value):
        raise InvalidInput(f"{name} contains a number that is too large or not finite. Send it as text.")


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _check_characters(name: str, text: str) -> None:
    """NUL and lone surrogates cannot be stored in a text file."""
    if "\0" in text:
        raise InvalidInput(f"{name} contains a NUL character. Remove it; notes are text files.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{name} contains half a character (a lone surrogate). Send valid UTF-8."
        ) from None


def _wrong_type(name: str, wanted: str, value: Any) -> ArgumentFault:
    return ArgumentFault(f"Argument '{name}' must be {wanted}, not {_describe(value)}.")


def _describe(value: Any) -> str:
    """A wrong value in a few words, whatever its size and depth."""
    if isinstance(value, str):
        return repr(value[:60])
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    # Python refuses to write out integers of more than 4,300 digits.
    return "a very large number" if not _is_finite(value) else repr(value)[:60]


def read_time(name: str, text: str | None) -> datetime | None:
    """An optional time; raises `InvalidInput`."""
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError:
        raise InvalidInput(
            f"{name} is not a time: {text!r}. Write it like 2026-01-31T12:00:00Z (no zone means UTC)."
        ) from None


def check_choice(name: str, value: str | None, choices: Sequence[str]) -> None:
    """None or one of the choices."""
    if value is not None and value not in choices:
        raise InvalidInput(f"{name} must be one of {', '.join(choices)}; not {value!r}.")


def unique(values: Sequence[str] | None) -> tuple[str, ...] | None:
    """The values trimmed, blank and repeated ones dropped, order kept; None stays None."""
    if values is None:
        return None
    return tuple(dict.fromkeys(text for value in values if (text := value.strip())))
