"""Which tools there are: those of the modules that capabilities name."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

import pytest

import lithos.tools
from lithos.app import capabilities
from lithos.app.capabilities import CAPABILITIES, all_tools, own_tools
from lithos.tools.contract import declaring


def test_every_declared_tool_is_registered() -> None:
    """A module that no capability names would keep its tools to itself."""
    for module in walk_packages(lithos.tools.__path__, f"{lithos.tools.__name__}."):
        import_module(module.name)
    registered = {tool.name for tool in (*all_tools(), *own_tools())}
    declared = {each for each, tool in declaring._DECLARED.items() if tool.arguments.__module__ in _lithos()}
    assert registered == declared


def _lithos() -> set[str]:
    return {module.name for module in walk_packages(lithos.tools.__path__, f"{lithos.tools.__name__}.")}


def test_left_out_capability_takes_its_tools_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where their module was imported before."""
    before = all_tools()
    kept = tuple(each for each in CAPABILITIES if each.name != "proposals")
    monkeypatch.setattr(capabilities, "CAPABILITIES", kept)
    gone = {tool.name for tool in before} - {tool.name for tool in all_tools()}
    assert gone == {"lithos_proposals", "lithos_proposal_withdraw"}
    assert [tool for tool in before if tool.name not in gone] == list(all_tools())
    assert "lithos_proposal_decide" not in {tool.name for tool in own_tools()}
