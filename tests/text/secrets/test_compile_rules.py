"""Rules are translated from Go's patterns, and only keys with a fixed beginning are taken."""

from __future__ import annotations

import re

from tests.text.secrets.compile_rules import compiled

FILTER = 'entropy(finding["secret"]) <= 3.5'


def rule(name: str, regex: str, confidence: str = "high") -> dict[str, str]:
    return {"id": name, "regex": regex, "confidence": confidence, "filter": FILTER}


def test_rule_gets_its_beginnings_and_a_bounded_pattern() -> None:
    given = rule("shop-pat", r"""\b((?:shop|mall)_(?i)[a-z0-9]{20,})(?:\\?['"\x60]|[\s;]|\\[nr]|$)""")
    (made,) = compiled({"rules": [given]})
    assert made["starts"] == ["mall_", "shop_"]
    assert made["kind"] == "shop token"
    assert made["entropy"] == 3.5
    assert re.fullmatch(made["pattern"], "shop_" + "A1" * 10)
    assert "{20,920}" in made["pattern"]


def test_rule_without_a_fixed_beginning_is_left_out() -> None:
    rules = [
        rule("hash", r"\b([a-f0-9]{32})\b"),
        rule("context", r"(?i)acme(?:[ \t\w.-]{0,20})=([a-z0-9]{32})"),
        rule("shop-url", r"https://shop_[a-z]{20}"),
        rule("unsure", r"shop_[a-z]{20}", "low"),
    ]
    assert list(compiled({"rules": rules})) == []
