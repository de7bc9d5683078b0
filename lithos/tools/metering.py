"""Counts and times tool calls: the one place where the work of the server becomes numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import field, frozen

from lithos.metrics import Metrics

_WRITES: Final = {"lithos_write": "write", "lithos_delete": "delete", "lithos_note_update": "update"}
_READS: Final = {"lithos_read": "read", "lithos_list": "list", "lithos_tags": "tags"}
_COORDINATION: Final = ("lithos_task_", "lithos_finding_", "lithos_agent_")
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
    """Moves the instruments of `lithos.metrics` for each call."""

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
