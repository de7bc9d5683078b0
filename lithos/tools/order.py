"""The fixed order in which tools are listed (tools spec, section 2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from lithos.tools.registry import Tool

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
    "lithos_links",
    "lithos_semantic",
    "lithos_provenance",
)


def in_order(tools: Iterable[Tool]) -> list[Tool]:
    """The tools sorted as the spec lists them; a tool without a place there is a mistake (`ValueError`)."""
    return sorted(tools, key=lambda tool: ORDER.index(tool.name))
