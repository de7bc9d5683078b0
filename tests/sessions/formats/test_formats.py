"""Readers of the clients' formats, on made-up samples in the form that the clients write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.sessions.formats.generic import FORMATS, recognise
from lithos.sessions.model.draft import SessionDraft
from lithos.sessions.model.session import MOST_OUTPUT, MOST_TEXT, Turn
from tests.sessions.transcripts import MASK, PLAIN, SAMPLES


def records_of(client: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SAMPLES / f"{client}.jsonl").read_text().splitlines()]


def turns_of(client: str, records: Sequence[Any]) -> tuple[list[Turn], dict[str, Any]]:
    draft = SessionDraft(PLAIN, {})
    for record in records:
        FORMATS[client].read(record, draft)
    return draft.take(), draft.memory


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        (
            "claude-code",
            [
                ("user", "Why are customers signed out at midnight?", (), (), ()),
                (
                    "assistant",
                    "I look at the cookie code first.",
                    ("Read",),
                    ("/srv/made-up/shop/cookies.py",),
                    ("EXPIRES = local_midnight()",),
                ),
                ("assistant", "The cookie expires at local midnight. It should use UTC.", (), (), ()),
                ("user", "/commit the fix", (), (), ()),
            ],
        ),
        (
            "codex",
            [
                ("user", "Make the oven timer count down", (), (), ()),
                (
                    "assistant",
                    "The timer counts down now.",
                    ("shell", "apply_patch"),
                    ("oven.py",),
                    ("oven.py",),
                ),
            ],
        ),
        (
            "gemini",
            [
                ("user", "Which port does the gateway use?", (), (), ()),
                (
                    "assistant",
                    "I read the configuration.",
                    ("read_file",),
                    ("/srv/made-up/gateway.toml",),
                    ("port = 8443",),
                ),
                ("assistant", "The gateway uses port 8443.", (), (), ()),
            ],
        ),
        (
            "opencode",
            [
                ("user", "Plan the watering of the garden", (), (), ()),
                (
                    "assistant",
                    "Water the tomatoes in the morning.",
                    ("read",),
                    ("beds.md", "plan.md"),
                    ("tomatoes, beans",),
                ),
            ],
        ),
        (
            "other",
            [("user", "Name a striped animal", (), (), ()), ("assistant", "A zebra.", (), (), ("roar",))],
        ),
    ],
)
def test_samples_give_their_turns(client: str, expected: list[tuple[Any, ...]]) -> None:
    turns, _ = turns_of(client, records_of(client))
    assert [(each.who, each.text, each.tools, each.files, each.outputs) for each in turns] == expected
    assert [each.number for each in turns] == list(range(1, len(expected) + 1))
    assert all(each.when is not None and each.when.year == 2026 for each in turns)


@pytest.mark.parametrize(
    ("client", "native", "folder"),
    [
        ("claude-code", "4f35e220-c435-4cf7-b9b9-f40426042847", "/srv/made-up/shop"),
        ("codex", "019a2d7a-41c4-78b1-b7cc-a45d62a89cd5", "/srv/made-up/bakery"),
        ("opencode", "ses_4d585107dffeO9bO3HvMdvLYyC", "/srv/made-up/garden"),
    ],
)
def test_session_and_folder_are_known(client: str, native: str, folder: str) -> None:
    _, memory = turns_of(client, records_of(client))
    assert (memory["native"], memory["cwd"]) == (native, folder)


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini", "opencode", "other"])
def test_format_is_recognised_by_one_of_the_first_records(client: str) -> None:
    known = [found.client for record in records_of(client) if (found := recognise(record)) is not None]
    assert known[0] == client


def test_sub_agent_is_a_session_of_its_own() -> None:
    record = {
        "type": "user", "sessionId": "s", "agentId": "a4e80a2", "isSidechain": True, "cwd": "/x",
        "message": {"role": "user", "content": "Research the trade-offs"},
    }  # fmt: skip
    turns, memory = turns_of("claude-code", [record])
    assert (turns[0].who, memory["native"], memory["agent"]) == ("agent", "s/a4e80a2", "a4e80a2")


def test_codex_records_before_the_envelope_are_read() -> None:
    records: list[dict[str, Any]] = [
        {"id": "old", "timestamp": "2025-06-01T00:00:00Z", "instructions": None, "git": {}},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
    ]
    assert recognise(records[0]) is FORMATS["codex"]
    turns, memory = turns_of("codex", records)
    assert (turns[0].text, memory["native"]) == ("Hello", "old")


def test_long_texts_are_cut_and_counted() -> None:
    long = "word " * MOST_TEXT
    records = [
        {"role": "user", "content": long},
        {"role": "assistant", "content": "Done."},
        {"role": "tool", "content": long},
    ]
    prompt, reply = turns_of("other", records)[0]
    assert len(prompt.text) <= MOST_TEXT
    assert prompt.cut == len(long) - MOST_TEXT
    assert [len(output) for output in reply.outputs] == [MOST_OUTPUT]


def test_secret_is_masked_before_the_text_is_cut() -> None:
    draft = SessionDraft(MASK, {})
    FORMATS["other"].read({"role": "assistant", "content": "Done."}, draft)
    FORMATS["other"].read({"role": "tool", "content": "x" * (MOST_OUTPUT - 3) + "hunter2"}, draft)
    (turn,) = draft.take()
    assert "hun" not in turn.outputs[0]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_NAMES = st.sampled_from(
    ["type", "payload", "message", "content", "role", "sessionId", "projectHash", "id", "parts", "info",
     "$set", "messages", "toolCalls", "timestamp", "text", "session", "output", "arguments",
     "agentId", "isSidechain"]
)  # fmt: skip
_WORDS = st.sampled_from(
    ["user", "assistant", "response_item", "message", "tool_use", "gemini", "tool", "function_call_output"]
)


@given(
    st.lists(st.dictionaries(_NAMES, _WORDS | _JSON | st.dictionaries(_NAMES, _WORDS | _JSON)), max_size=4)
)
def test_records_of_any_form_raise_no_error(records: list[dict[str, Any]]) -> None:
    for client in FORMATS:
        turns_of(client, records)
    for record in records:
        recognise(record)


def test_message_that_is_written_again_replaces_its_stored_turn() -> None:
    records = records_of("gemini")
    draft = SessionDraft(PLAIN, {})
    for record in records[:4]:
        FORMATS["gemini"].read(record, draft)
    first = draft.take()
    later = SessionDraft(PLAIN, {}, first[-1], known=lambda: {each.key for each in first})
    for record in (records[1], *records[4:]):
        FORMATS["gemini"].read(record, later)
    second = later.take()
    assert [(each.number, each.text) for each in second] == [
        (2, "I read the configuration."),
        (3, "The gateway uses port 8443."),
    ]
    assert second[0].tools == ("read_file",)
