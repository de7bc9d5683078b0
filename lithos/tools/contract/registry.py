"""The tool registry: order of `tools/list` (docs/spec/tools.md §2), dispatch, error envelopes, metering.

This is the only place that makes error envelopes, and the only one that counts and times tool calls.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any, Final, Literal

from attrs import field, frozen

from lithos.core.errors import LithosError
from lithos.core.principals import COMMAND, OWNER, Principal
from lithos.metrics import Metrics
from lithos.services.opening import Opening
from lithos.tools.contract.acting import admit, spec_for
from lithos.tools.contract.admission import Admission
from lithos.tools.contract.arguments import (
    ArgumentFault,
    ArgumentReader,
    ToolSpec,
    UnknownTool,
    Which,
    reader_of,
    schema_of,
)
from lithos.tools.contract.fitting import PAGED, UNPAGED, fit

_WRITES: Final = {
    "lithos_write": "write",
    "lithos_delete": "delete",
    "lithos_note_update": "update",
    "lithos_note_move": "move",
    "lithos_note_edit": "edit",
    "lithos_restore": "restore",
}
_READS: Final = {"lithos_read": "read", "lithos_list": "list", "lithos_tags": "tags"}
#: Reads that compute for milliseconds: one at a time beside a change.
HEAVY: Final = frozenset({
    "lithos_search", "lithos_retrieve", "lithos_cache_lookup", "lithos_list", "lithos_related",
    "lithos_context",
})  # fmt: skip
_COORDINATION: Final = ("lithos_task_", "lithos_finding_", "lithos_agent_")
#: A task's end may say which notes helped.
_LESSON: Final = "lithos_task_complete"
_MODES: Final = ("fulltext", "semantic", "hybrid", "graph")


@frozen
class Call:
    """One finished call: `outcome` is ok, error or exception; `error` is the code, if any."""

    tool: str
    arguments: Mapping[str, Any]
    answer: Mapping[str, Any] | None
    outcome: str
    error: str | None
    seconds: float


@frozen
class ToolMeter:
    """Updates the instruments of `lithos.metrics` for each call."""

    metrics: Metrics = field(factory=Metrics)

    def record(self, call: Call) -> None:
        """Count one call."""
        self.metrics.count("tool_calls", call.tool)
        self.metrics.observe("tool_duration_seconds", call.seconds, call.tool, call.outcome)
        if call.error is not None:
            self.metrics.count("tool_errors", call.tool, call.error)
        success = "true" if call.outcome == "ok" else "false"
        if call.tool in _WRITES:
            self._record_write(_WRITES[call.tool], success, call.seconds)
        elif call.tool in _READS:
            self.metrics.count("knowledge_operations", _READS[call.tool])
        elif call.tool == "lithos_search":
            self._record_search(call, success)
        elif call.tool == "lithos_cache_lookup":
            self._record_lookup(call)
        elif call.tool.startswith(_COORDINATION):
            self.metrics.count("coordination_operations", call.tool.removeprefix("lithos_"))

    def _record_write(self, operation: str, success: str, seconds: float) -> None:
        self.metrics.count("knowledge_operations", operation)
        self.metrics.observe("knowledge_write_duration_seconds", seconds, operation, success)

    def _record_search(self, call: Call, success: str) -> None:
        mode = call.arguments.get("mode") or "hybrid"
        if mode in _MODES:
            self.metrics.count("search_operations", mode)
            self.metrics.observe("search_duration_seconds", call.seconds, mode, success)

    def _record_lookup(self, call: Call) -> None:
        self.metrics.observe("cache_lookup_duration_seconds", call.seconds)
        if call.error == "search_backend_error":
            self.metrics.count("cache_lookups", "error_search_backend")
        elif call.outcome == "ok" and call.answer is not None:
            stale = "miss_stale" if call.answer["stale_exists"] else "miss_clean"
            self.metrics.count("cache_lookups", "hit" if call.answer["hit"] else stale)


def begin_tools(metrics: Metrics) -> None:
    """Have the series of tool calls show zero before the first call."""
    for tool in ORDER:
        metrics.begin("tool_calls", tool)
        metrics.begin("tool_duration_seconds", tool, "ok")
        metrics.begin("tool_errors", tool, "internal_error")
    for mode in _MODES:
        metrics.begin("search_operations", mode)
        metrics.begin("search_duration_seconds", mode, "true")
    for operation in set(_WRITES.values()):
        metrics.begin("knowledge_write_duration_seconds", operation, "true")
    for outcome in ("hit", "miss_stale", "miss_clean", "error_search_backend"):
        metrics.begin("cache_lookups", outcome)


Profile = Literal["core", "standard", "full"]
PROFILES: Final[tuple[Profile, ...]] = ("core", "standard", "full")
#: Refusals that may carry their code as `status` (`server.write_outcomes: status`).
WRITE_OUTCOMES: Final = frozenset({"version_conflict", "slug_collision", "path_collision", "duplicate"})
#: Characters of a message; arguments it quotes may be of any length.
LONGEST_MESSAGE: Final = 1_000

Answer = Mapping[str, Any] | None
Handler = Callable[[Any], Awaitable[Answer]]
#: The id of the note at a path, which may be deleted where "kept" ones are asked for. Raises `DocNotFound`.
Locate = Callable[[str, Which], Awaitable[str]]


@frozen
class Tool:
    """One tool: `profile` is the smallest one that lists it; `hints` are letters of R, D and I."""

    name: str
    profile: Profile
    hints: str
    description: str
    arguments: type
    handler: Handler
    reader: ArgumentReader = field(init=False)

    def __attrs_post_init__(self) -> None:
        is_paged = PAGED.get(self.name, UNPAGED).takes_offset
        object.__setattr__(self, "reader", reader_of(self.arguments, is_paged=is_paged))

    @property
    def reads_notes(self) -> bool:
        """Whether its answer depends on the notes, and changes none."""
        return "R" in self.hints and not self.name.startswith(_COORDINATION)

    @property
    def writes_notes(self) -> bool:
        """Whether it changes notes, or what is known of them."""
        return "R" not in self.hints and (not self.name.startswith(_COORDINATION) or self.name == _LESSON)

    def spec(self) -> ToolSpec:
        """The tool as clients see it."""
        return ToolSpec(
            name=self.name,
            description=self.description,
            input_schema=schema_of(self.arguments, is_paged=PAGED.get(self.name, UNPAGED).takes_offset),
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
        max_answer_chars: int = 0,
        meter: ToolMeter | None = None,
        opening: Opening | None = None,
        locate: Locate,
    ) -> None:
        """Until `opening` is complete, what is read of notes says so, and writes wait for its first pass.

        `max_answer_chars`: characters of JSON of an answer, 0 for no limit. `locate` finds notes by path.
        """
        self._locate = locate
        self._opening = opening or Opening.finished()
        self._by_name = {tool.name: tool for tool in tools}
        shown = PROFILES[: PROFILES.index(profile) + 1]
        self._listed = tuple((tool, tool.spec()) for tool in tools if tool.profile in shown)
        self._outcome_status = outcome_status
        self._max_answer_chars = max_answer_chars
        self._meter = meter or ToolMeter()
        self._admission = Admission()

    def acting_as(self, principal: Principal) -> ActingTools:
        """The tools as this caller has them: with its rights, under its identity."""
        return ActingTools(self, principal)

    def listed(self, principal: Principal = OWNER) -> Sequence[ToolSpec]:
        """What `tools/list` shows to a caller."""
        shown = (spec_for(principal, tool, spec) for tool, spec in self._listed)
        return tuple(spec for spec in shown if spec is not None)

    async def call(self, name: str, arguments: Mapping[str, Any], principal: Principal = COMMAND) -> Answer:
        """Run a tool; a domain error is returned as an error envelope, so is a refusal of the caller.

        Who names no `principal` is code of this process; what is asked from outside comes by `acting_as`.

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
            arguments = admit(principal, tool, arguments)
            for named in tool.reader.paths(arguments):
                arguments = named.put_id(await self._locate(named.path, named.which), arguments)
            given, offset = tool.reader.read(arguments), tool.reader.offset(arguments)
            if tool.writes_notes:
                await self._opening.wait_known()
            answer = self._fit(tool, await self._serve(tool, given), offset)
            outcome, error = "ok", None
        except LithosError as refusal:
            outcome, error = "error", refusal.code
            answer = fit(self._envelope(refusal), UNPAGED, self._max_answer_chars, 0, is_skipped=True)
        except ArgumentFault:
            outcome, error = "error", "invalid_arguments"
            raise
        finally:
            seconds = perf_counter() - began
            self._meter.record(Call(name, arguments, answer, outcome, error, seconds))
        indexing = self._opening.status() if tool.reads_notes else None
        if indexing is None or answer is None:
            return answer
        return {**answer, "indexing": dict(indexing), "degraded": True}

    async def _serve(self, tool: Tool, given: object) -> Answer:
        """Have a call served when its turn has come: a heavy read may have to wait beside a change."""
        if tool.name in HEAVY:
            async with self._admission.reading():
                return await tool.handler(given)
        if "R" in tool.hints:
            return await tool.handler(given)
        with self._admission.changing():
            return await tool.handler(given)

    def _fit(self, tool: Tool, answer: Answer, offset: int) -> Answer:
        """The answer within the limit; `lithos_context` keeps to its own budget."""
        if answer is None or tool.name == "lithos_context":
            return answer
        paged = PAGED.get(tool.name, UNPAGED)
        return fit(answer, paged, self._max_answer_chars, offset, is_skipped=tool.reader.skips)

    def _envelope(self, refusal: LithosError) -> Mapping[str, Any]:
        own_status = self._outcome_status and refusal.code in WRITE_OUTCOMES
        return {
            "status": refusal.code if own_status else "error",
            "code": refusal.code,
            "message": _shorten(refusal.message),
            **refusal.extras,
        }


@frozen
class ActingTools:
    """The tools of a server for one caller; a view that costs nothing to make."""

    _tools: Tools
    _principal: Principal

    def listed(self) -> Sequence[ToolSpec]:
        """What `tools/list` shows to this caller."""
        return self._tools.listed(self._principal)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Run a tool as this caller; as `Tools.call`."""
        return await self._tools.call(name, arguments, self._principal)


ORDER: Final = (
    "lithos_write",
    "lithos_read",
    "lithos_delete",
    "lithos_search",
    "lithos_retrieve",
    "lithos_edge_upsert",
    "lithos_edge_list",
    "lithos_conflict_resolve",
    "lithos_cache_lookup",
    "lithos_list",
    "lithos_related",
    "lithos_tags",
    "lithos_agent_register",
    "lithos_agent_info",
    "lithos_agent_list",
    "lithos_task_create",
    "lithos_task_update",
    "lithos_task_claim",
    "lithos_task_renew",
    "lithos_task_release",
    "lithos_task_complete",
    "lithos_task_cancel",
    "lithos_task_list",
    "lithos_task_status",
    "lithos_node_stats",
    "lithos_finding_post",
    "lithos_finding_list",
    "lithos_stats",
    "lithos_note_update",
    "lithos_task_get",
    "lithos_task_reopen",
    "lithos_task_ready",
    "lithos_task_blocked",
    "lithos_task_children",
    "lithos_task_edge_upsert",
    "lithos_task_edge_list",
    "lithos_task_spawn",
    "lithos_context",
    "lithos_task_next",
    "lithos_note_move",
    "lithos_note_edit",
    "lithos_history",
    "lithos_impact",
    "lithos_restore",
    "lithos_links",
    "lithos_semantic",
    "lithos_provenance",
)


def in_order(tools: Iterable[Tool]) -> list[Tool]:
    """The tools sorted as the spec lists them; a tool without a place there is a mistake (`ValueError`)."""
    return sorted(tools, key=lambda tool: ORDER.index(tool.name))
