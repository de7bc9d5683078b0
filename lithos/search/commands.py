"""The search commands."""

from __future__ import annotations

from typing import Any, Final

from lithos.server.command.declaring import CliCommand, flag, take

_MODE: Final[dict[str, Any]] = {"action": "store_const", "dest": "mode", "alone": True}

COMMANDS: Final = (
    CliCommand("search", "search the notes", "lithos.search.commands_queries:run_search", (
        take("query QUERY", "words or question to search for"),
        flag("--fulltext", "full-text search", const="fulltext", **_MODE),
        flag("--semantic", "semantic search", const="semantic", **_MODE),
        flag("--hybrid", "full-text and semantic search (default)", const="hybrid", **_MODE),
        take("-n --limit", "maximum number of results (default: 5)", int),
        take("--project KEY", "only notes of this project, such as github.com/acme/shop"),
    ), group="read and search", place=20),
)  # fmt: skip
