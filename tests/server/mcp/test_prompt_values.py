"""Texts of the prompts (behaviour 206)."""

from __future__ import annotations

import re

import pytest

from lithos.app.capabilities import all_tools
from lithos.server.tools.resource_uris import PROMPTS, BadPrompt, render_prompt


def test_research_first_prompt_searches_first_and_updates_stale_notes() -> None:
    """behaviour 206"""
    _, text = render_prompt("research-first", {"topic": 'How "trio" cancels', "max_age_hours": " 48.0 "})
    assert 'lithos_cache_lookup with query="How \\"trio\\" cancels" and max_age_hours=48;' in text
    for word in ("lithos_read", "lithos_write", "source_url", "tags", "confidence", "ttl_hours", "stale_id"):
        assert word in text
    _, without = render_prompt("research-first", {"topic": "x", "max_age_hours": ""})
    assert 'query="x";' in without
    assert "max_age_hours" not in without


def test_handoff_prompt_names_the_task_and_the_agent() -> None:
    """behaviour 206"""
    _, text = render_prompt("handoff", {"task_id": "t-1", "agent": "ada"})
    assert 'task_id="t-1" and agent="ada"' in text
    for word in ("lithos_finding_post", "lithos_task_release", "lithos_task_complete", "Next step:"):
        assert word in text


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt.name)
def test_prompts_name_only_existing_tools(prompt) -> None:
    text = prompt.render({argument.name: "5" for argument in prompt.arguments})
    named = set(re.findall(r"lithos_\w+", text))
    assert named
    assert named <= {tool.name for tool in all_tools()}
    assert "{" not in text


@pytest.mark.parametrize(
    ("name", "given", "reason"),
    [
        ("nothing", {}, "Unknown prompt 'nothing'. Known prompts: research-first, handoff."),
        ("research-first", {}, "Argument 'topic' of prompt 'research-first' is missing or blank."),
        ("research-first", {"topic": " "}, "missing or blank"),
        ("research-first", {"topic": "x", "max_age_hours": "soon"}, "must be a number above 0, not 'soon'"),
        ("research-first", {"topic": "x", "max_age_hours": "nan"}, "above 0"),
        ("research-first", {"topic": "x", "max_age_hours": "-1"}, "above 0"),
        ("handoff", {"task_id": "t"}, "Argument 'agent'"),
        ("handoff", {"task_id": "t", "agent": "a", "to": "b"}, "Unknown argument 'to'"),
    ],
)
def test_error_names_the_invalid_prompt_argument(name: str, given: dict[str, str], reason: str) -> None:
    with pytest.raises(BadPrompt, match=re.escape(reason)):
        render_prompt(name, given)
