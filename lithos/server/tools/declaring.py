"""Declaration of a tool: a class with the decorator `@tool`, its parameters as fields, and `answer`.

```python
@tool("lithos_agent_info", "full", "RI", place=14, of="tasks")
class AgentInfoTool:
    \"""What is known of an agent.\"""

    id: str = argument("Agent id.", bound=LOOKUP)

    async def answer(self, using: Parts) -> Answer: ...
```

Schema, argument checks, listing, rights, metrics, paging and the reference are derived from the declaration.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final, Literal, Protocol, TypeVar

import attrs
from attrs import define, field

from lithos.kernel.parts import Parts
from lithos.server.tools.arguments import ArgumentReader, TakesRequest, ToolSpec
from lithos.server.tools.compacting import PLAIN, CompactForm
from lithos.server.tools.fitting import UNPAGED, CuttableAnswer

Profile = Literal["core", "standard", "full", "connector", "own"]
#: Each profile includes the tools of the profiles before it. `CONNECTOR` lists only its own tools.
PROFILES: Final[tuple[Profile, ...]] = ("core", "standard", "full")
CONNECTOR: Final = "connector"
#: Profile of tools that are never listed: only Lithos's own commands and pages call them, with the right
#: `admin`.
OWN: Final = "own"
Answer = Mapping[str, Any] | None
C = TypeVar("C", bound=type[Any])


class ToolCall(Protocol):
    """One call with checked arguments, of a class declared by `@tool`."""

    async def answer(self, using: Parts) -> Answer: ...


@define(eq=False)
class Tool:
    """One tool, declared by a decorator on its class. Clients see the docstring of the class.

    `profile`: the smallest profile that lists the tool; `hints`: letters of R, D and I;

    * `place`: position in `tools/list` (docs/spec/tools.md §2); `of`: subject (notes, tasks or both);
    * `paged`: the parts of the answer that may be long; `fits_itself`: the tool observes the size limit
      itself;
    * `sparing`: the keys that compact answers keep or leave out;
    * `is_heavy`: a read that computes for milliseconds; while a change runs, such reads run one at a time;
    * `counts`: the knowledge operation under which metrics count the tool;
    * `preview`: a parameter and its value (or default) with which a call changes nothing;
    * `creates`: each call creates a new object, so `request_id` is listed to identify retries;
    * `is_legacy`: the tool exists only with `server.legacy_tools`.
    """

    name: str
    profile: Profile
    hints: str = ""
    place: int = field(kw_only=True)
    of: Literal["notes", "tasks", "both"] = "notes"
    paged: CuttableAnswer = UNPAGED
    sparing: CompactForm = PLAIN
    fits_itself: bool = False
    is_heavy: bool = False
    counts: str = ""
    preview: tuple[str, str] | None = None
    creates: bool = False
    is_legacy: bool = False
    arguments: type = field(init=False)
    reader: ArgumentReader = field(init=False)

    def __call__(self, cls: C) -> C:
        """Declare the tool."""
        # Calls are never compared or printed, and generating these methods would take half of the tools'
        # start time.
        self.arguments = made = attrs.frozen(cls, eq=False, repr=False)
        changes = "R" not in self.hints and self.profile != OWN
        request: TakesRequest = "listed" if self.creates else "taken" if changes else "none"
        self.reader = ArgumentReader(made, is_paged=bool(self.paged.rows), request=request)
        _DECLARED[self.name] = self
        return made

    @property
    def description(self) -> str:
        """Return the description for clients."""
        return " ".join(inspect.cleandoc(self.arguments.__doc__ or "").split())

    @property
    def reads_notes(self) -> bool:
        """Return whether the tool reads notes without changing them."""
        return "R" in self.hints and self.of == "notes"

    @property
    def writes_notes(self) -> bool:
        """Return whether the tool changes notes or data about notes."""
        return "R" not in self.hints and self.of != "tasks"

    def spec(self, *, is_short: bool = False) -> ToolSpec:
        """Return the tool as clients see it. `is_short` leaves out rare parameters."""
        return ToolSpec(
            name=self.name,
            description=self.description,
            input_schema=self.reader.short_schema if is_short else self.reader.schema,
            read_only="R" in self.hints,
            destructive="D" in self.hints,
            idempotent="I" in self.hints,
        )


_DECLARED: Final[dict[str, Tool]] = {}  # bounded: the tools of all modules
tool: Final = Tool


def declared_by(modules: Sequence[str]) -> tuple[Tool, ...]:
    """Import these modules and return the tools that they declare, in the order of `tools/list`."""
    for module in modules:
        import_module(module)
    named = frozenset(modules)
    found = (each for each in _DECLARED.values() if each.arguments.__module__ in named)
    return tuple(sorted(found, key=lambda each: each.place))
