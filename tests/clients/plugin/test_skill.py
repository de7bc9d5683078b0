"""The skill, which names only existing tools and follows the Agent Skills format (behaviour 244)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from docs.interface import list_errors
from lithos.app.capabilities import all_tools
from lithos.app.main import main
from lithos.clients.hooks.checkpoint import reminder_for
from lithos.clients.hooks.payload import Payload
from lithos.clients.plugin.writing import SKILL, make_skill

ROOT = Path(__file__).parents[3]
TOOLS = {tool.name: set(tool.reader.schema["properties"]) for tool in all_tools()}
REFERENCE = (ROOT / "docs" / "reference" / "tools.md").read_text(encoding="utf-8")
#: Words in backticks that are neither parameters nor keys of an answer.
COMMANDS = {'lithos checkpoint --text "..."', "lithos wait --types proposal.approved"}


def answer_keys(tool: str | None) -> set[str]:
    """Return the answer keys in the examples of the reference. The examples come from real calls."""
    page = REFERENCE
    if tool is not None:
        page = page.partition(f"### {tool}\n")[2].partition("\n##")[0]
    return set(re.findall(r'"(\w+)":', page))


def blocks_of(text: str) -> Iterator[str]:
    """Yield paragraphs and list items, each as one line."""
    for part in re.split(r"\n\n|\n(?=\* |\d+\. )", text):
        yield " ".join(part.split())


def unknown_words(text: str) -> list[str]:
    """Return unknown tool names, and words in backticks that belong to no tool in the same block."""
    codes = {each.code for each in list_errors()}
    wrong = [name for name in re.findall(r"lithos_\w+", text) if name not in TOOLS]
    for block in blocks_of(text):
        named = [tool for tool in re.findall(r"lithos_\w+", block) if tool in TOOLS]
        known = codes | set().union(*(TOOLS[tool] | answer_keys(tool) for tool in named or TOOLS))
        if not named:
            known |= answer_keys(None) | {"kind", "distance", "code", "message", "warnings", "status"}
        for word in re.findall(r"`([^`]+)`", block):
            if word not in known and word not in TOOLS and word not in COMMANDS:
                wrong.append(f"{word} in: {block}")
    return wrong


@pytest.mark.needs("proposals")
def test_skill_names_only_existing_tools_and_parameters() -> None:
    """Behaviour 244."""
    text = make_skill()
    assert len(set(re.findall(r"lithos_\w+", text))) > 15
    assert len(re.findall(r"`([^`]+)`", text)) > 40
    assert "`lithos_search`" in text
    assert not {"`search`", "`fetch`"} & set(re.findall(r"`[^`]+`", text)), "names of other clients' tools"
    assert unknown_words(text) == []


def test_hook_reminders_name_only_existing_tools() -> None:
    """Behaviour 244."""
    for event in ("PreCompact", "SessionStart", None):
        text = reminder_for(Payload(event=event))
        assert "lithos_" in text or event == "PreCompact"
        assert unknown_words(text) == []


def test_skill_follows_the_agent_skills_format() -> None:
    """The format allows name, description and the other keys in its specification."""
    _, front, body = make_skill().split("---\n", 2)
    head = yaml.safe_load(front)
    assert head.keys() <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert head["name"] == SKILL
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", head["name"])
    assert len(head["name"]) <= 64
    assert 0 < len(head["description"]) <= 1_024
    assert "<" not in head["description"]
    assert all(isinstance(value, str) for value in head["metadata"].values())
    assert body.lstrip().startswith("# Lithos\n")


def test_skill_has_at_most_1500_tokens() -> None:
    """The estimate assumes 3.5 bytes per token, as in English text."""
    assert len(make_skill().encode()) / 3.5 <= 1_500


def test_skill_lists_exactly_the_existing_warning_kinds() -> None:
    page = (ROOT / "docs" / "warnings.md").read_text(encoding="utf-8")
    kinds = {*re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE), "cut"} - {"kind"}
    section = make_skill().partition("## Warnings")[2].partition("\n## ")[0]
    told = re.findall(r"^\* ([a-z_, ]+):", section, re.MULTILINE)
    assert {kind for line in told for kind in line.split(", ")} == kinds


def test_skill_command_prints_the_skill(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command works with every configuration, because the skill is the same for all."""
    monkeypatch.setenv("LITHOS_PORT", "no number")
    assert main(["skill"]) == 0
    assert capsys.readouterr().out == make_skill()
    assert main(["skill", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "lithos", "text": make_skill()}
