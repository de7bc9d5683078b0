"""What the front and the tools say to each other: a tool's description and the two protocol faults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen


@frozen
class ToolSpec:
    """One tool as `tools/list` shows it.

    `input_schema` is a JSON Schema object; the three hints are those of the MCP specification.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    read_only: bool
    destructive: bool
    idempotent: bool


class ArgumentFault(Exception):
    """An argument is unknown, missing or of the wrong type; `message` names it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UnknownTool(Exception):
    """No tool is called `name`."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown tool: '{name}'")
        self.name = name
