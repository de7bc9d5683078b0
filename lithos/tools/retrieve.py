"""The tool that finds what helps with a task, and learns from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from attrs import frozen

from lithos.core.memory import SurfacedConflict
from lithos.services.retrieve import Result, Retrieve, RetrieveRequest
from lithos.stores.fulltext import Filters
from lithos.tools.arguments import argument
from lithos.tools.registry import Answer, Tool
from lithos.tools.rows import search_row


@frozen
class RetrieveArguments:
    """Parameters of `lithos_retrieve`."""

    query: str = argument("What you want to know.", may_be_blank=True)
    limit: int = argument("Most results.", 10)
    namespace_filter: tuple[str, ...] | None = argument("Only these namespaces.", None)
    agent_id: str | None = argument("Your agent id; shows your private notes too.", None)
    task_id: str | None = argument("Your task; shows its notes too.", None)
    surface_conflicts: bool = argument("Tell unsettled contradictions.", False)
    max_context_nodes: int | None = argument("Notes to look around; default limit.", None)
    tags: tuple[str, ...] | None = argument("Only notes with all of these tags.", None)
    path_prefix: str | None = argument("Only paths that begin so.", None)


class RetrieveTools:
    """Handlers; each takes its arguments class."""

    def __init__(self, retrieve: Retrieve, clock: Callable[[], datetime]) -> None:
        self._retrieve = retrieve
        self._clock = clock

    def tools(self) -> Sequence[Tool]:
        """The family in listing order."""
        return (
            Tool(
                "lithos_retrieve",
                "core",
                "R",
                "Find what helps with a task: by words, meaning, links and past use. Keep receipt_id for "
                "lithos_task_complete.",
                RetrieveArguments,
                self.retrieve,
            ),
        )

    async def retrieve(self, arguments: RetrieveArguments) -> Answer:
        """`lithos_retrieve`."""
        answer = await self._retrieve.retrieve(
            RetrieveRequest(
                query=arguments.query,
                limit=arguments.limit,
                namespaces=arguments.namespace_filter or None,
                agent_id=arguments.agent_id,
                task_id=arguments.task_id,
                surface_conflicts=arguments.surface_conflicts,
                max_context_nodes=arguments.max_context_nodes,
                filters=Filters(tags=arguments.tags or (), path_prefix=arguments.path_prefix or None),
            )
        )
        now = self._clock()
        result: dict[str, Any] = {
            "results": [retrieve_row(each, now) for each in answer.results],
            "temperature": answer.receipt.temperature,
            "terrace_reached": answer.receipt.terrace_reached,
            "receipt_id": answer.receipt.id,
            "degraded": answer.degraded,
            "failed_scouts": list(answer.failed_scouts),
        }
        if answer.conflicts is not None:
            result["conflicts"] = [conflict_row(each) for each in answer.conflicts]
        return result


def retrieve_row(result: Result, now: datetime) -> dict[str, Any]:
    """One result: a search row, and how it came about."""
    return search_row(result.hit, now) | {
        "reasons": list(result.reasons),
        "scouts": list(result.scouts),
        "salience": result.traits.salience,
        "usage_score": result.traits.usage,
    }


def conflict_row(conflict: SurfacedConflict) -> dict[str, Any]:
    """One contradiction."""
    return {
        "edge_id": conflict.edge_id,
        "from_id": conflict.from_id,
        "to_id": conflict.to_id,
        "conflict_state": conflict.conflict_state,
    }
