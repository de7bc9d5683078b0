"""Tool discovery: the registered tools come from the modules of the capabilities."""

from __future__ import annotations

from importlib import import_module

import pytest

from lithos.app import capabilities
from lithos.app.capabilities import CAPABILITIES, all_tools, own_tools
from lithos.server.tools import declaring
from tests.house import modules


def test_every_declared_tool_is_registered() -> None:
    """Tools of a module that no capability names would not be registered."""
    for module in _with_tools():
        import_module(module)
    registered = {tool.name for tool in (*all_tools(), *own_tools())}
    declared = {
        each for each, tool in declaring._DECLARED.items() if tool.arguments.__module__ in _with_tools()
    }
    assert registered == declared


def _with_tools() -> set[str]:
    return {module for module, source in modules().items() if "\n@tool(" in source}


@pytest.mark.needs("proposals")
def test_omitted_capability_removes_its_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools are removed even if their module has already been imported."""
    before = all_tools()
    kept = tuple(each for each in CAPABILITIES if each.name != "proposals")
    monkeypatch.setattr(capabilities, "CAPABILITIES", kept)
    gone = {tool.name for tool in before} - {tool.name for tool in all_tools()}
    assert gone == {"lithos_proposals", "lithos_proposal_withdraw"}
    assert [tool for tool in before if tool.name not in gone] == list(all_tools())
    assert "lithos_proposal_decide" not in {tool.name for tool in own_tools()}
