"""Options with a project of the commands for people (docs/spec/projects.md §2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import lithos.clients.commands_sessions as commands
from lithos.app.options import parse_arguments
from lithos.kernel.configuration.catalogue import Config
from lithos.search.commands_queries import search
from lithos.server.command.session import CommandSession

KEY = "github.com/acme/shop"


class Asked:
    """Server that records the arguments of its calls."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.arguments: list[Mapping[str, Any]] = []
        self._answer = answer

    async def call(self, tool: str, arguments: Mapping[str, Any], /) -> Mapping[str, Any]:
        self.arguments.append(arguments)
        return self._answer

    async def health(self) -> Mapping[str, Any]:
        raise AssertionError("only tools are called here")

    async def accesses(self, query: Mapping[str, Any], /) -> Mapping[str, Any]:
        raise AssertionError("only tools are called here")


def test_briefing_asks_for_the_project_only_if_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Asked({"text": ""})

    async def find(session: CommandSession, why: str) -> Asked:
        return server

    monkeypatch.setattr(commands, "require_owner", find)
    for words in ((), ("--project", KEY)):
        assert commands.run_brief(CommandSession(parse_arguments(("brief", "till", *words)), Config())) == 0
    assert [each.get("project") for each in server.arguments] == [None, KEY]
    assert "project" not in server.arguments[0]


async def test_search_asks_for_the_project_only_if_it_is_given() -> None:
    server = Asked({"results": []})
    for words in ((), ("--project", KEY)):
        assert (
            await search(CommandSession(parse_arguments(("search", "till", *words)), Config()), server) == 0
        )
    assert [each.get("project") for each in server.arguments] == [None, KEY]
    assert "project" not in server.arguments[0]
