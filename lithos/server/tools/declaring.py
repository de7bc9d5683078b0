"""Declaration of a tool: a class with the decorator `@tool`.

The fields of the class are the parameters, and `answer` runs the tool.

```python
@tool("lithos_agent_info", "full", "RI", place=14, title="Show an agent", of="tasks")
class AgentInfoTool:
    \"""What is known of an agent.\"""

    id: str = argument("Agent id.", bound=LOOKUP)

    async def answer(self, using: Parts) -> Answer: ...
```

Schema, argument checks, listing, rights, metrics, paging and reference page are derived from this
declaration.
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
#: Profiles in order. Each profile also contains the tools of the profiles before it. `CONNECTOR` contains
#: only its own tools.
PROFILES: Final[tuple[Profile, ...]] = ("core", "standard", "full")
CONNECTOR: Final = "connector"
#: Profile of tools that are never listed. Only Lithos's own commands and pages call them, with the right
#: `admin`.
OWN: Final = "own"
Answer = Mapping[str, Any] | None
C = TypeVar("C", bound=type[Any])


class ToolCall(Protocol):
    """Call of a tool declared by `@tool`. Its fields are the checked arguments."""

    async def answer(self, using: Parts) -> Answer: ...


@define(eq=False)
class Tool:
    """Declaration of one tool, used as a class decorator. Clients see the docstring of the class.

    `profile`: the smallest profile that lists the tool. `hints`: the letters R (read-only), D (destructive)
    and I (idempotent).

    * `place`: the position in `tools/list` (docs/spec/tools.md §2). `of`: the subject (notes, tasks or both).
    * `title`: the name that clients show to people, a verb and its object. `is_always_loaded`: clients that
      defer tools shall show the tool on the first turn.
    * `paged`: the parts of the answer that may be long. `fits_itself`: the tool itself observes the size
      limit.
    * `sparing`: the keys that compact answers keep or leave out.
    * `is_heavy`: the tool is a read that computes for milliseconds. While a change is running, such reads run
      one at a time.
    * `counts`: the knowledge operation to which metrics add the calls.
    * `preview`: a parameter, and the value with which the call changes nothing. This value is the default.
    * `creates`: each call creates a new object, so clients see `request_id` and can mark retries.
    * `is_legacy`: the tool exists only if `server.legacy_tools` is set.
    """

    name: str
    profile: Profile
    hints: str = ""
    place: int = field(kw_only=True)
    title: str = ""
    is_always_loaded: bool = False
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
        """Declare the class as a tool and return the finished class."""
        # Calls are never compared or printed. Without these methods, the start of the tools takes half the
        # time.
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
        """Return whether the tool only reads, and reads notes."""
        return "R" in self.hints and self.of == "notes"

    @property
    def writes_notes(self) -> bool:
        """Return whether the tool changes notes or data about notes."""
        return "R" not in self.hints and self.of != "tasks"

    def spec(self, *, is_short: bool = False) -> ToolSpec:
        """Return the tool in the form for clients. `is_short` leaves out rare parameters."""
        return ToolSpec(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.reader.short_schema if is_short else self.reader.schema,
            read_only="R" in self.hints,
            destructive="D" in self.hints,
            idempotent="I" in self.hints,
            is_always_loaded=self.is_always_loaded,
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
