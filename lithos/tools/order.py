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
    "lithos_cache_lookup",
    "lithos_list",
    "lithos_tags",
    "lithos_agent_register",
    "lithos_agent_info",
    "lithos_agent_list",
    "lithos_stats",
)


def in_order(tools: Iterable[Tool]) -> list[Tool]:
    """The tools sorted as the spec lists them; a tool without a place there is a mistake (`ValueError`)."""
    return sorted(tools, key=lambda tool: ORDER.index(tool.name))
