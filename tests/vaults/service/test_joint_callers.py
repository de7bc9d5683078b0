"""Callers of several vaults at once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from attrs import evolve

from lithos.kernel.values.principals import Principal
from lithos.vaults.service.joint import JointPrincipal, VaultSet


def test_caller_has_the_project_of_its_call_in_every_vault() -> None:
    named: Any = {name: SimpleNamespace(name=name) for name in ("home", "work")}
    parts = (("home", Principal("ann", "read")), ("work", Principal("bot", "write")))
    caller = evolve(JointPrincipal("ann", "write", parts=parts), project="shop", session="s1")
    found = VaultSet(named, "work").allowed(caller)
    assert [(vault.name, who.name, who.project, who.session) for vault, who in found] == [
        ("work", "bot", "shop", "s1"),
        ("home", "ann", "shop", "s1"),
    ]
