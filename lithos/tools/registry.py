"""The tools as one box: what is listed, how a call runs, and the one place that makes envelopes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, Final, Literal

from attrs import field, frozen

from lithos.core.errors import LithosError
from lithos.tools.arguments import ArgumentReader, schema_of
from lithos.tools.contract import ArgumentFault, ToolSpec, UnknownTool
from lithos.tools.metering import Call, ToolMeter

Profile = Literal["core", "standard", "full"]
PROFILES: Final[tuple[Profile, ...]] = ("core", "standard", "full")
#: Refusals that may carry their code as `status` (`server.write_outcomes: status`).
WRITE_OUTCOMES: Final = frozenset({"version_conflict", "slug_collision", "path_collision", "duplicate"})
#: Characters of a message; arguments it quotes may be of any length.
LONGEST_MESSAGE: Final = 1_000

Answer = Mapping[str, Any] | None
Handler = Callable[[Any], Awaitable[Answer]]


@frozen
class Tool:
    """One tool: `profile` is the smallest one that lists it; `hints` are letters of R, D and I."""

    name: str
    profile: Profile
    hints: str
    description: str
    arguments: type[Any]
    handler: Handler
    reader: ArgumentReader = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "reader", ArgumentReader(self.arguments))

    def spec(self) -> ToolSpec:
        """The tool as clients see it."""
        return ToolSpec(
            name=self.name,
            description=self.description,
            input_schema=schema_of(self.arguments),
            read_only="R" in self.hints,
            destructive="D" in self.hints,
            idempotent="I" in self.hints,
        )


def _shorten(message: str) -> str:
    """A message that quotes a very long argument, with its beginning and its advice at the end."""
    if len(message) <= LONGEST_MESSAGE:
        return message
    return f"{message[: LONGEST_MESSAGE // 2]} … {message[-LONGEST_MESSAGE // 2 :]}"


class Tools:
    """All tools of one server, in their fixed order."""

    def __init__(
        self,
        tools: Sequence[Tool],
        profile: Profile,
        *,
        outcome_status: bool = False,
        meter: ToolMeter | None = None,
    ) -> None:
        self._by_name = {tool.name: tool for tool in tools}
        shown = PROFILES[: PROFILES.index(profile) + 1]
        self._listed = tuple(tool.spec() for tool in tools if tool.profile in shown)
        self._outcome_status = outcome_status
        self._meter = meter or ToolMeter()

    def listed(self) -> Sequence[ToolSpec]:
        """What `tools/list` shows."""
        return self._listed

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Run a tool; a refusal comes back as an envelope.

        Raises `UnknownTool` and `ArgumentFault`, which are the protocol's business.
        """
        tool = self._by_name.get(name)
        if tool is None:
            raise UnknownTool(name)
        began = perf_counter()
        answer: Answer = None
        outcome = "exception"
        error: str | None = "exception"
        try:
            answer = await tool.handler(tool.reader.read(arguments))
            outcome, error = "ok", None
        except LithosError as refusal:
            outcome, error = "error", refusal.code
            answer = self._envelope(refusal)
        except ArgumentFault:
            outcome, error = "error", "invalid_arguments"
            raise
        finally:
            seconds = perf_counter() - began
            self._meter.record(Call(name, arguments, answer, outcome, error, seconds))
        return answer

    def _envelope(self, refusal: LithosError) -> Mapping[str, Any]:
        own_status = self._outcome_status and refusal.code in WRITE_OUTCOMES
        return {
            "status": refusal.code if own_status else "error",
            "code": refusal.code,
            "message": _shorten(refusal.message),
            **refusal.extras,
        }
