"""Stub of the program `claude`. It starts the server from `~/.claude.json` and calls it.

The stub follows the prompt in README.md: it searches, names the notes it found, and writes one note.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

AGENT = "claude-code"


async def answer(question: str) -> None:
    """Search for the question, print the titles of found notes, and write a note."""
    entry = json.loads((Path.home() / ".claude.json").read_text())["mcpServers"]["lithos"]
    parameters = StdioServerParameters(command=entry["command"], args=entry["args"])
    async with Client(stdio_client(parameters)) as lithos:

        async def call(tool: str, **arguments: object) -> dict[str, Any]:
            result = await lithos.call_tool(tool, {**arguments, "agent": AGENT})
            assert not result.is_error, result
            assert result.structured_content is not None
            return dict(result.structured_content)

        known = await call("lithos_context", query=question)
        titles = ", ".join(item["title"] for item in known["items"]) or "nothing yet"
        written = await call("lithos_write", title="Onboarding", content=f"Asked: {question}")
        sys.stdout.write(f"Known: {titles}\nWritten: {written['path']}\n")


if __name__ == "__main__":
    anyio.run(answer, sys.argv[1])
