"""The visible text of each client on the first turn of a session: a part of `bench.reach`.

A client shows the tools that it does not defer, perhaps the names of deferred tools, perhaps the instructions
of the server, and the text of a hook at the session start. Only documented behaviour counts. If the
documentation of a client does not mention the instructions, they count as not shown. The sources were stored
copies, read on 29 Nov 2026:

* Claude Code: code.claude.com/docs/en/mcp. Tools with `anthropic/alwaysLoad` are shown, others by name.
  Instructions are cut at 2 KB. The server's `alwaysLoad` shows all tools.
* Codex: codex-rs/core, mcp_tool_exposure. All tools are behind a search, without a switch. The first 512
  characters of the instructions should be enough alone (developers.openai.com/codex/mcp).
* Cursor: cursor.com/blog/dynamic-context-discovery. Names only, no switch.
* VS Code: microsoft/vscode-docs, pull request 9695. Names only, no switch.
* Copilot CLI: docs.github.com, concepts/agents/copilot-cli/tool-search. From about 30 tools on they are
  behind a search. `deferTools: never` shows all.
* Gemini CLI: geminicli.com/docs/tools/mcp-server. No deferral. Instructions are part of the system prompt,
  but issue 15528 of google-gemini/gemini-cli (2025-12) says that they were not.
* opencode: opencode.ai/docs/mcp-servers. Version 1 does not defer. Version 2 has Code Mode, and
  `codemode: false` shows all tools.
* Claude Desktop: a setting of the app, "Tool access mode". It has no hooks.
* Windsurf and Zed: no deferral, and no hook that can give the model text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, Literal

from attrs import frozen

from bench.report import print_report, render_table
from lithos.app.server import Server
from lithos.clients.connect.instructions import block
from lithos.kernel.values.principals import OWNER
from lithos.search.embedding.tokenizer import load_pieces
from lithos.server.mcp.server import INSTRUCTIONS
from lithos.server.mcp.trigger import TRIGGER
from lithos.server.tools.arguments import ToolSpec
from lithos.text.words.tokens import Count, count_with

#: Form of deferred tools on the first turn: the marked tools and names, names only, or nothing.
Deferral = Literal["marked", "names", "hidden"]
#: Budget of the hook at the session start.
START_TOKENS: Final = 800


@frozen
class Client:
    """The behaviour of a client on the first turn.

    `deferral` is None if it never defers, and `has_switch` means that a server can be excepted. `told` is the
    number of characters of the instructions that are shown. `has_file` means that it reads a file such as
    AGENTS.md, which may have the block of `lithos connect --instructions`.
    """

    name: str
    deferral: Deferral | None
    has_switch: bool
    told: int
    has_start_hook: bool
    has_file: bool = True


_ALL: Final = 1_000_000
CLIENTS: Final = (
    Client("Claude Code", "marked", True, 2_048, True),
    Client("Codex", "hidden", False, 512, True),
    Client("Cursor", "names", False, 0, True),
    Client("VS Code", "names", False, 0, True),
    Client("Copilot CLI", "hidden", True, 0, True),
    Client("Gemini CLI", None, False, _ALL, True),
    Client("opencode 1", None, False, 0, True),
    Client("opencode 2", "hidden", True, 0, True),
    Client("Claude Desktop", "names", True, 0, False, has_file=False),
    Client("Windsurf", None, False, 0, False),
    Client("Zed", None, False, 0, False),
)


@frozen
class Turn:
    """The visible text of a first turn."""

    client: str
    tools: Literal["deferred", "loaded"]
    with_hook: bool
    with_block: bool
    text: str

    def row(self, count: Count) -> dict[str, Any]:
        """Return the figures: tokens, and whether the trigger and the tool `lithos_context` are visible."""
        return {
            "client": self.client,
            "tools": self.tools,
            "hook": self.with_hook,
            "block": self.with_block,
            "tokens": count(self.text),
            "trigger": TRIGGER in self.text,
            "lithos_context": "lithos_context" in self.text,
        }


def turns(client: Client, tools: list[ToolSpec], start: str) -> Iterator[Turn]:
    """Yield the first turns of a client. `start` is the text of the hook at the session start."""
    forms: list[Literal["deferred", "loaded"]] = []
    forms += ["deferred"] if client.deferral is not None else []
    forms += ["loaded"] if client.deferral is None or client.has_switch else []
    for form in forms:
        listed = _listed(tools, client.deferral if form == "deferred" else None)
        for with_hook in (False, True) if client.has_start_hook else (False,):
            for with_block in (False, True) if client.has_file else (False,):
                told = [*listed, INSTRUCTIONS[: client.told], start * with_hook, block(None) * with_block]
                text = "\n".join(part for part in told if part)
                yield Turn(client.name, form, with_hook, with_block, text)


def _listed(tools: list[ToolSpec], deferral: Deferral | None) -> list[str]:
    if deferral == "hidden":
        return []
    whole = [tool for tool in tools if deferral is None or (deferral == "marked" and tool.is_always_loaded)]
    shown = [
        json.dumps(
            {"name": tool.name, "description": tool.description, "inputSchema": dict(tool.input_schema)}
        )
        for tool in whole
    ]
    return shown + [tool.name for tool in tools if tool not in whole]


async def report_turns(server: Server) -> None:
    """Print the figures of each client and a table."""
    count = count_with(load_pieces())
    brief = {"query": "heron", "budget": START_TOKENS, "agent_id": "bench"}
    answer: Any = await server.tools.call("lithos_context", brief, OWNER)
    tools = list(server.tools.listed())
    rows = [turn.row(count) for client in CLIENTS for turn in turns(client, tools, str(dict(answer)["text"]))]
    for row in rows:
        print_report("reach", first_turn=row)
    head = ["client", "tools", "hook", "block", "tokens", "trigger", "lithos_context"]
    print(render_table(head, [[_told(row[key]) for key in head] for row in rows]))


def _told(value: object) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)
