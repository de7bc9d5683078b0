"""The declaration of a tool: one class, marked by `@tool`, with its parameters as fields and its `answer`.

```python
@tool("lithos_agent_info", "full", "RI", place=14, of="tasks")
class AgentInfoTool:
    \"""What is known of an agent.\"""

    id: str = argument("Agent id.", bound=LOOKUP)

    async def answer(self, using: Parts) -> Answer: ...
```

The schema, the reading of arguments, the listing, rights, metrics, paging and the reference follow from it.
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
#: Each also lists the tools of the profiles before it; `CONNECTOR` lists only its own tools.
PROFILES: Final[tuple[Profile, ...]] = ("core", "standard", "full")
CONNECTOR: Final = "connector"
#: Never listed: only Lithos's own commands and pages call these tools, with the right `admin`.
OWN: Final = "own"
Answer = Mapping[str, Any] | None
C = TypeVar("C", bound=type[Any])


class ToolCall(Protocol):
    """One call: the checked arguments, of a class declared by `@tool`."""

    async def answer(self, using: Parts) -> Answer: ...


@define(eq=False)
class Tool:
    """One tool, declared by the decorator of its class, whose docstring is shown to clients.

    `profile` is the smallest one that lists it; `hints` are letters of R, D and I.

    * `place` in `tools/list` (docs/spec/tools.md §2); `of` notes, of tasks, or of both;
    * `paged`: the parts of its answer that may be long; `fits_itself`: it keeps to the limit itself;
    * `sparing`: the keys that its compact answers keep and leave out;
    * `is_heavy`: a read that computes for milliseconds: one at a time while a change runs;
    * `counts`: the operation on knowledge that metrics count it as;
    * `preview`: a parameter and the value (also when left out) with which a call changes nothing;
    * `creates`: it makes something new each time, so `request_id` is listed, by which a retry is known;
    * `is_legacy`: there only with `server.legacy_tools`.
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
        # Calls are never compared or printed; generating these methods is half of the tools' start time.
        self.arguments = made = attrs.frozen(cls, eq=False, repr=False)
        changes = "R" not in self.hints and self.profile != OWN
        request: TakesRequest = "listed" if self.creates else "taken" if changes else "none"
        self.reader = ArgumentReader(made, is_paged=bool(self.paged.rows), request=request)
        _DECLARED[self.name] = self
        return made

    @property
    def description(self) -> str:
        """The description for clients."""
        return " ".join(inspect.cleandoc(self.arguments.__doc__ or "").split())

    @property
    def reads_notes(self) -> bool:
        """Whether its answer depends on the notes, and changes none."""
        return "R" in self.hints and self.of == "notes"

    @property
    def writes_notes(self) -> bool:
        """Whether it changes notes, or what is known of them."""
        return "R" not in self.hints and self.of != "tasks"

    def spec(self, *, is_short: bool = False) -> ToolSpec:
        """Return the tool as clients see it; `is_short` without the parameters that are rarely needed."""
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
