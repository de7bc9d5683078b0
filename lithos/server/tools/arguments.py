"""Tool arguments. One frozen class per tool defines both the JSON Schema and the checked values.

Unknown, missing and wrongly typed arguments are protocol errors (`ArgumentFault`). An argument with the value
null counts as left out, and so does an optional argument with blank text. If no call can accept a value of
the right type, it is refused (`InvalidInput`). This module also checks values for which no note has to be
read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Literal, TypeVar, get_type_hints

import attrs
from attrs import frozen

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.events import TAKING_BACK, TOOL
from lithos.kernel.values.ids import is_id
from lithos.kernel.values.limits import TITLE, check_text
from lithos.kernel.values.times import parse_time
from lithos.server.tools.bounds import NAME, PATH, Bound
from lithos.server.tools.ignored_arguments import is_added
from lithos.server.tools.values import KINDS, is_blank, kind_of, read_integer, read_text, says_nothing
from lithos.server.tools.values import ArgumentFault as ArgumentFault  # noqa: PLC0414
from lithos.text.markdown import clean_title
from lithos.text.words.analysis import normalise


@frozen
class ToolSpec:
    """Tool in the form in which `tools/list` shows it.

    `input_schema` is a JSON Schema object. The last three fields are annotations of the Model Context
    Protocol. `is_always_loaded` asks clients that defer tools to show this tool on the first turn.
    """

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    read_only: bool
    destructive: bool
    idempotent: bool
    is_always_loaded: bool = False


class UnknownTool(Exception):
    """No tool has the name `name`."""

    code: Final = "unknown_tool"

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown tool: '{name}'")
        self.name = name
        self.message = str(self)


A = TypeVar("A")
C = TypeVar("C")

#: Names that every tool accepts for the calling agent. A tool may have another parameter for the agent.
CALLERS: Final = ("agent", "agent_id")
_CALLER: Final = CALLERS[0]
#: Argument that identifies retries of a call, and its description for clients.
REQUEST_ID: Final = "request_id"
_TOLD_OF_REQUEST: Final = "Id of this call, for safe retries."
#: Number of rows or characters to skip. Tools that return pages have this argument.
_OFFSET: Final = "offset"
_TOLD_OF_OFFSET: Final = "Rows to skip; use next_offset."
#: Names of the parameter for the note that a tool works on. Callers may give its path instead, as `path`, or
#: as `from_path` if the tool has another parameter `path`. For other notes, such as `to_id`, the argument is
#: named `to_path`.
_SUBJECT: Final = ("id", "node_id")
_PATH, _FROM_PATH = "path", "from_path"
#: Parameters for task ids, and parameters for several note ids. The beginning of an id is accepted there.
_OF_TASKS: Final = frozenset((
    "task_id", "parent_task_id", "from_task_id", "to_task_id", "source_task_id", "source_task", "depends_on",
))  # fmt: skip
_OF_NOTES: Final = frozenset(("seed_ids", "derived_from_ids", "cited_nodes", "misleading_nodes"))
#: Parameter for the common beginning of the paths to search.
_PREFIX: Final = "path_prefix"
#: Notes that a path may name: only existing notes, or also deleted notes.
Which = Literal["there", "kept"]
#: Whether a tool accepts a `request_id`, and whether clients see this parameter.
TakesRequest = Literal["listed", "taken", "none"]
#: Function that returns the id of the note at a path. With "kept", the note may be deleted. Raises
#: `DocNotFound`.
Locate = Callable[[str, Which], Awaitable[str]]
#: Function that returns the Lithos id of the note or task that uses this text as its id, or whose id begins
#: with it. If no id fits, it returns the text. Raises `AmbiguousIdPrefix`.
Identify = Callable[[str], Awaitable[str]]


def argument(
    description: str,
    default: Any = attrs.NOTHING,
    *,
    bound: Bound | None = None,
    may_be_blank: bool = False,
    one_of: Sequence[str] = (),
    is_caller: bool = False,
    filters_agent: bool = False,
    is_listed: bool = True,
    is_rare: bool = False,
    is_own: bool = False,
    note: Which | None = None,
    also: str | None = None,
) -> Any:
    """Declare a tool parameter. A parameter without a default is required.

    `bound` is the maximum size of a value. Every text, list and object needs a bound. `one_of` lists the
    useful values for clients, but the tool itself refuses a wrong value. `may_be_blank`: blank text has a
    meaning, such as clearing a value. `is_caller`: the parameter names the calling agent. `agent` and
    `agent_id` are also accepted for it. `filters_agent`: the parameter selects the work of an agent, who may
    be another agent than the caller. `is_listed`: clients see the parameter. Unlisted parameters are accepted
    too. `is_rare`: only the profile `full` lists the parameter, because each listed parameter costs tokens in
    every session. `is_own`: only Lithos's own commands and pages may use the parameter. `note`: the parameter
    is the id of a note. Callers may give a path instead (`note_paths`), but the tool always gets the id.
    `also`: a second name of the parameter, which is not listed. If both names are given, the value under the
    first name is the path of the note.
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
            "filters_agent": filters_agent,
            "is_listed": is_listed and not is_own,
            "is_rare": is_rare,
            "is_own": is_own,
            "note": note,
            "also": also,
        },
    )


def note_paths(cls: type[Any]) -> dict[str, str]:
    """Return the path argument that callers may give in place of each note id parameter."""
    names = attrs.fields_dict(cls)
    subject = _FROM_PATH if _PATH in names else _PATH
    return {
        name: subject if name in _SUBJECT else f"{name.removesuffix('_id')}_path"
        for name, attribute in names.items()
        if attribute.metadata["note"] is not None
    }


def one_form(name: str) -> str:
    """Return an agent name in the stored form, which is NFC without surrounding space."""
    return normalise("NFC", name.strip())


def read_title(title: str) -> str:
    """Return a title as one line without markup.

    Raises `InvalidInput` if it has more than 1,000 characters.
    """
    check_text("title", title, TITLE)
    return clean_title(title)


#: Description of the parameter `undo`. Only `lithos undo` and the console use it.
TAKES_BACK: Final = "This takes back what an agent changed."


def source_of(is_undo: bool) -> str:
    """Return the event source for a change."""
    return TAKING_BACK if is_undo else TOOL


def as_command(kind: type[A], given: object, **checked: object) -> A:
    """Return a command object whose fields are the arguments of a call. `checked` replaces some values.

    A type checker cannot verify that names and types match, so tests/server/tools/test_commands.py does.
    """
    kinds: tuple[type[Any], type[Any]] = kind, type(given)
    wanted, had = map(attrs.fields_dict, kinds)
    return kind(**{name: getattr(given, name) for name in wanted if name in had} | checked)


class ArgumentReader:
    """Reader for the arguments of one tool class. It inspects the class only once.

    Every tool accepts `agent` and `agent_id`. If the tool has a parameter for the caller, they name the
    caller. Otherwise they are ignored. Tools that return pages (`is_paged`) also accept `offset`. Call
    `with_ids` before `read`, to replace the paths of notes by ids.
    """

    def __init__(self, cls: type, *, is_paged: bool = False, request: TakesRequest = "none") -> None:
        """Inspect the parameters of the class.

        `request` says whether the tool accepts a `request_id`, and whether clients see it.
        """
        self._cls = cls
        self._is_paged = is_paged
        self._lists_request = request == "listed"
        kinds = {name: KINDS[kind_of(hint)] for name, hint in get_type_hints(cls).items()}
        self._readers = {each.name: (*kinds[each.name], each) for each in attrs.fields(cls)}
        #: Parameters that name the calling agent, and parameters that are reserved for Lithos itself.
        self.callers = tuple(each.name for each in attrs.fields(cls) if each.metadata["is_caller"])
        self.own = tuple(each.name for each in attrs.fields(cls) if each.metadata["is_own"])
        own = (*self.callers, _CALLER)
        self._caller = next((name for name in own if name in self._readers), None)
        #: Parameter that selects the work of one agent, or None.
        self.agent_filter = next(
            (each.name for each in attrs.fields(cls) if each.metadata["filters_agent"]), None
        )
        self._common = ({*CALLERS, _OFFSET} if is_paged else {*CALLERS}) - self._readers.keys()
        if request != "none":
            self._common |= {REQUEST_ID}
        #: Parameter for each path argument, by name of the path argument.
        self._paths = {path: name for name, path in note_paths(cls).items()}
        #: Parameters that contain namespaces, and whether the tool has a path prefix.
        self._namespaces = tuple({"namespace", "namespace_filter"} & self._readers.keys())
        self.has_prefix = _PREFIX in self._readers
        #: Parameters whose ids are completed after `read`, and whether they are ids of tasks.
        self._ids = {name: name in _OF_TASKS for name in self._readers if name in _OF_TASKS | _OF_NOTES}
        #: First name of a parameter, by its second name.
        self._also = {also: each.name for each in attrs.fields(cls) if (also := each.metadata["also"])}

    @property
    def skips(self) -> bool:
        """Return whether the tool itself skips the first `offset` rows."""
        return _OFFSET in self._readers

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        """Return the input schema.

        Tools that return pages also have `offset`. All callers get the same object.

        Path arguments are listed only for the note that the tool works on. Otherwise the listing would become
        too long.
        """
        return self._schema(with_rare=True)

    @cached_property
    def short_schema(self) -> Mapping[str, Any]:
        """Return the input schema without rare parameters.

        The short schema allows additional arguments, so callers can still use rare parameters.
        """
        return self._schema(with_rare=False)

    def _schema(self, *, with_rare: bool) -> Mapping[str, Any]:
        paths = {name: path for path, name in self._paths.items() if name in _SUBJECT}
        properties: dict[str, Any] = {}
        required: list[str] = []
        for _, kind, each in self._readers.values():
            if not each.metadata["is_listed"] or (each.metadata["is_rare"] and not with_rare):
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
        if self._is_paged and (with_rare or "limit" not in properties):
            properties.setdefault(_OFFSET, {"type": "integer", "description": _TOLD_OF_OFFSET})
        if self._lists_request:
            properties[REQUEST_ID] = {"type": "string", "description": _TOLD_OF_REQUEST}
        result: dict[str, Any] = {"type": "object", "properties": properties}
        if with_rare:
            result["additionalProperties"] = False
        return {**result, "required": required} if required else result

    def read(self, given: Mapping[str, Any]) -> Any:
        """Return an instance of the tool class. Raises `ArgumentFault` and `InvalidInput`."""
        for name in given:
            if name not in self._readers and name not in self._common and name not in self._paths:
                self._check_added(name, given)
        given = self._with_caller(given)
        values: dict[str, Any] = {}
        missing: list[str] = []
        for name, (read, _, attribute) in self._readers.items():
            value = given.get(name)
            is_optional = attribute.default is not attrs.NOTHING
            if value is None or (is_optional and self._is_left_out(name, value)):
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
        """Return the values with agent names in the stored form. For example, "ann " becomes "ann".

        Namespaces are converted to NFC.
        """
        for name in (_CALLER, *self.callers, self.agent_filter):
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
        """Return the arguments with the first name of each parameter in place of its second name.

        If both names are given, the value under the first name becomes the path of the note. Raises
        `ArgumentFault` if another path is given for that note.
        """
        for also, name in self._also.items():
            value = given.get(also)
            if value is None or is_blank(value):
                given = {key: each for key, each in given.items() if key != also}
                continue
            rest = {key: each for key, each in given.items() if key not in (also, name)}
            subject = given.get(name)
            if subject is not None and not is_blank(subject):
                if rest.get(_FROM_PATH) not in (None, "", subject):
                    raise ArgumentFault(
                        f"{name} and {_FROM_PATH} both name the note next to {also}. Leave out one of them."
                    )
                rest[_FROM_PATH] = subject
            given = {**rest, name: value}
        return given

    def _check_added(self, name: str, given: Mapping[str, Any]) -> None:
        """Raise `ArgumentFault` for an unknown argument.

        Arguments that clients are known to add on their own are accepted.
        """
        if not is_added(name, given.keys(), self._readers.keys() | self._common):
            known = ", ".join((*self._readers, *self._paths)) or "none"
            raise ArgumentFault(f"Unknown argument {name[:100]!r}. Known arguments: {known}.")

    def _is_left_out(self, name: str, value: Any) -> bool:
        """Return whether an optional parameter counts as left out.

        The value of a parameter that is left out is blank, or "null" if no text is expected.

        "null" is a valid text, but not for note ids or for parameters with a fixed choice of values.
        """
        if not isinstance(value, str):
            return False
        metadata = self._readers[name][2].metadata
        if not value.strip():
            return not metadata["may_be_blank"]
        is_text = self._readers[name][0] is read_text and not metadata["one_of"] and metadata["note"] is None
        return not is_text and says_nothing(value)

    async def with_ids(
        self, given: Mapping[str, Any], locate: Locate, identify: Identify
    ) -> Mapping[str, Any]:
        """Return the arguments with a Lithos id in place of each note path and each other id of a note.

        Raises `ArgumentFault` and the errors of `locate`. Raises `InvalidInput` if a path and an id name
        different notes.
        """
        given = self.renamed(given) if self._also else given
        paths = [path for path in self._paths if given.get(path) is not None and not is_blank(given[path])]
        for path in paths:
            PATH.check(path, read_text(path, given[path]))
        for path in paths:
            name = self._paths[path]
            note_id = await locate(given[path], self._readers[name][2].metadata["note"])
            own = given.get(name)
            if own is not None and not is_blank(own) and own != note_id:
                raise InvalidInput(
                    f"{name} and {path} name two different notes: the note at "
                    f"{given[path][:200]!r} is {note_id}. Give only {name} or only {path}."
                )
            given = {**given, name: note_id}
        for name in self._paths.values():
            value = given.get(name)
            if isinstance(value, str) and value.strip() and not is_id(value):
                given = {**given, name: await identify(value)}
        return given

    async def with_whole_ids(self, given: C, identify_note: Identify, identify_task: Identify) -> C:
        """Return the checked arguments with whole ids in the parameters that contain ids of tasks or notes.

        `with_ids` has already done this for single notes. Raises `AmbiguousIdPrefix`.
        """
        whole: dict[str, Any] = {}
        for name, is_of_task in self._ids.items():
            value = getattr(given, name)
            texts = (value,) if isinstance(value, str) else value or ()
            if all(map(is_id, texts)):
                continue
            identify = identify_task if is_of_task else identify_note
            ids = tuple([await _complete(text, identify) for text in texts])
            whole[name] = ids[0] if isinstance(value, str) else ids
        return attrs.evolve(given, **whole) if whole else given  # type: ignore[misc]

    def _missing(self, name: str) -> ArgumentFault:
        others = {**self._paths, **self._also}
        instead = "".join(f" (or '{other}')" for other, each in others.items() if each == name)
        told = self._readers[name][2].metadata["description"]
        return ArgumentFault(f"Missing argument '{name}'{instead}: {told}")

    def offset(self, given: Mapping[str, Any]) -> int:
        """Return the number of rows to skip. Raises `ArgumentFault` and `InvalidInput`."""
        value = given.get(_OFFSET)
        if value is None or is_blank(value):
            return 0
        offset = read_integer(_OFFSET, value)
        if offset < 0:
            raise InvalidInput(
                f"offset must not be negative, but it is {offset:.0f}. Leave it "
                "out to begin at the first row."
            )
        return offset

    def request_id(self, given: Mapping[str, Any]) -> str | None:
        """Return the id that identifies retries of a call, or None.

        Raises `ArgumentFault` and `InvalidInput`.
        """
        value = given.get(REQUEST_ID)
        if value is None or REQUEST_ID not in self._common or is_blank(value):
            return None
        request_id = read_text(REQUEST_ID, value).strip()
        NAME.check(REQUEST_ID, request_id)
        return request_id

    def _with_caller(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments with the caller's name under the tool's own parameter.

        A value that is already there is kept.
        """
        for name in CALLERS:
            agent = given.get(name)
            if name not in self._common or agent is None or is_blank(agent):
                continue
            NAME.check(name, read_text(name, agent))
            if self._caller is not None and is_blank(given.get(self._caller) or ""):
                given = {**given, self._caller: one_form(agent)}
        return given


async def _complete(text: str, identify: Identify) -> str:
    """Return the id that begins with a text. A text that names a note in another way stays unchanged."""
    found = text if is_id(text) else await identify(text)
    return found if found.startswith(text.strip().lower()) else text


def read_time(name: str, text: str | None, parse: Callable[[str], datetime] = parse_time) -> datetime | None:
    """Return an optional time. `parse` converts its text. Raises `InvalidInput`."""
    if text is None:
        return None
    try:
        return parse(text)
    except ValueError:
        raise InvalidInput(
            f"{name} is not a time: {text!r}. Write it like 2026-01-31T12:00:00Z (no zone means UTC)."
        ) from None


def check_choice(name: str, value: str | None, choices: Sequence[str]) -> None:
    """Raise `InvalidInput` if a value is not one of the choices. None is allowed."""
    if value is not None and value not in choices:
        raise InvalidInput(f"{name} must be one of {', '.join(choices)}, but it is {value!r}.")


def unique(values: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the trimmed values in order, without blank values and repetitions. None stays None."""
    if values is None:
        return None
    return tuple(dict.fromkeys(text for value in values if (text := value.strip())))
