"""The tool registry: order of `tools/list` (docs/spec/tools.md §2), dispatch, error envelopes, metering.

This is the only place that makes error envelopes, and the only one that counts and times tool calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, Final

from attrs import field, frozen

from lithos.core.errors import LithosError
from lithos.core.principals import COMMAND, OWNER, Principal
from lithos.metrics import Metrics
from lithos.tools.contract.acting import admit, spec_for
from lithos.tools.contract.admission import Admission
from lithos.tools.contract.arguments import ArgumentFault, ToolSpec, UnknownTool
from lithos.tools.contract.declaring import PROFILES, Answer, Answering, Services, Tool, all_tools
from lithos.tools.contract.fitting import UNPAGED, fit

_MODES: Final = ("fulltext", "semantic", "hybrid", "graph")


@frozen
class Call:
    """One finished call: `outcome` is ok, error or exception; `error` is the code, if any."""

    tool: Tool
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
        tool, name = call.tool, call.tool.name
        self.metrics.count("tool_calls", name)
        self.metrics.observe("tool_duration_seconds", call.seconds, name, call.outcome)
        if call.error is not None:
            self.metrics.count("tool_errors", name, call.error)
        success = "true" if call.outcome == "ok" else "false"
        if tool.counts and "R" not in tool.hints:
            self._record_write(tool.counts, success, call.seconds)
        elif tool.counts:
            self.metrics.count("knowledge_operations", tool.counts)
        elif name == "lithos_search":
            self._record_search(call, success)
        elif name == "lithos_cache_lookup":
            self._record_lookup(call)
        elif tool.of != "notes":
            self.metrics.count("coordination_operations", name.removeprefix("lithos_"))

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
    for tool in all_tools():
        metrics.begin("tool_calls", tool.name)
        metrics.begin("tool_duration_seconds", tool.name, "ok")
        metrics.begin("tool_errors", tool.name, "internal_error")
        if tool.counts and "R" not in tool.hints:
            metrics.begin("knowledge_write_duration_seconds", tool.counts, "true")
    for mode in _MODES:
        metrics.begin("search_operations", mode)
        metrics.begin("search_duration_seconds", mode, "true")
    for outcome in ("hit", "miss_stale", "miss_clean", "error_search_backend"):
        metrics.begin("cache_lookups", outcome)


#: Refusals that may carry their code as `status` (`server.write_outcomes: status`).
WRITE_OUTCOMES: Final = frozenset({"version_conflict", "slug_collision", "path_collision", "duplicate"})
#: Characters of a message; arguments it quotes may be of any length.
LONGEST_MESSAGE: Final = 1_000


def _shorten(message: str) -> str:
    """A message that quotes a very long argument, with its beginning and its advice at the end."""
    if len(message) <= LONGEST_MESSAGE:
        return message
    return f"{message[: LONGEST_MESSAGE // 2]} … {message[-LONGEST_MESSAGE // 2 :]}"


class Tools:
    """All tools of one server, in their fixed order."""

    def __init__(self, using: Services) -> None:
        """Until its start is complete, what is read of notes says so, and writes wait for its first pass."""
        server = using.config.server
        self._locate = using.knowledge.locate
        self._opening = using.opening
        self._using = using
        self._by_name = {tool.name: tool for tool in all_tools() if server.legacy_tools or not tool.is_legacy}
        shown = PROFILES[: PROFILES.index(server.tools) + 1]
        self._listed = tuple((tool, tool.spec()) for tool in self._by_name.values() if tool.profile in shown)
        self._outcome_status = using.is_plain
        #: Characters of JSON of an answer, 0 for no limit.
        self._max_answer_chars = server.answer_limit
        self._meter = ToolMeter(using.metrics)
        begin_tools(using.metrics)
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
            self._meter.record(Call(tool, arguments, answer, outcome, error, seconds))
        indexing = self._opening.status() if tool.reads_notes else None
        if indexing is None or answer is None:
            return answer
        return {**answer, "indexing": dict(indexing), "degraded": True}

    async def _serve(self, tool: Tool, given: Answering) -> Answer:
        """Have a call served when its turn has come: a heavy read may have to wait beside a change."""
        if tool.is_heavy:
            async with self._admission.reading():
                return await given.answer(self._using)
        if "R" in tool.hints:
            return await given.answer(self._using)
        with self._admission.changing():
            return await given.answer(self._using)

    def _fit(self, tool: Tool, answer: Answer, offset: int) -> Answer:
        """The answer within the limit."""
        if answer is None or tool.fits_itself:
            return answer
        return fit(answer, tool.paged, self._max_answer_chars, offset, is_skipped=tool.reader.skips)

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
