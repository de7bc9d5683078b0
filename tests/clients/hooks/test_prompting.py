"""Prompt hook: it gives only strong matches, and no passage twice in a session (behaviour 314)."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from lithos.clients.files_session_cursors import sessions_folder, told_session
from lithos.clients.hooks.payload import Payload
from lithos.clients.hooks.prompting import MOST_OF_SESSION, question_of, run
from lithos.server.command.hook_failsafe import NoHookOutput

QUESTION = "How do we restore the Heron database from its backup?"


def row(key: str = "aaaaaaaa", match: str = "strong", **other: str) -> dict[str, str]:
    return {
        "id": "n",
        "title": "Heron backups",
        "path": "heron/backups.md",
        "snippet": f"Run restore.sh ({key}).",
        "match": match,
        "passage": key,
    } | other


@define
class FakeOwner:
    """A server that answers with `rows`, as the real one does without the passages that are seen."""

    rows: list[dict[str, str]] = field(factory=list)
    failure: BaseException | None = None
    obeys: bool = True
    calls: list[Mapping[str, Any]] = field(factory=list)
    until: float = field(factory=lambda: time.monotonic() + 60)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        assert tool == "lithos_search"
        assert arguments["prompt"] is True
        self.calls.append(arguments)
        if self.failure is not None:
            raise self.failure
        seen = arguments["seen"] if self.obeys else ()
        return {"results": [each for each in self.rows if each.get("passage") not in seen]}


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def ask(owner: Any, prompt: str | None = QUESTION, session: str | None = "s1") -> str:
    return run(Payload(event="UserPromptSubmit", session=session, prompt=prompt), owner, {"agent": "me"})


def test_strong_match_is_shown_with_title_and_path() -> None:
    owner = FakeOwner([row()])
    text = ask(owner)
    assert text.splitlines()[1:] == ["", "Heron backups (heron/backups.md):", "> Run restore.sh (aaaaaaaa)."]
    assert owner.calls == [{"query": QUESTION, "prompt": True, "seen": [], "agent_id": "me"}]


@pytest.mark.parametrize("match", ["fair", "weak", ""])
def test_hook_is_silent_without_a_strong_match(match: str) -> None:
    """Behaviour 314."""
    assert ask(FakeOwner([row(match=match)])) == ask(FakeOwner()) == ""


@pytest.mark.parametrize("obeys", [True, False])
def test_passage_is_shown_once_in_a_session(obeys: bool) -> None:
    """Behaviour 314. A server that returns a seen passage again does not change this."""
    owner = FakeOwner([row()], obeys=obeys)
    assert ask(owner) != ""
    assert [ask(owner), ask(owner, "Where is the backup of the Heron db?")] == ["", ""]
    assert [call["seen"] for call in owner.calls] == [[], ["aaaaaaaa"], ["aaaaaaaa"]]
    owner.rows.append(row("bbbbbbbb"))
    assert "bbbbbbbb" in ask(owner)
    assert "aaaaaaaa" in ask(owner, session="s2")


def test_sessions_without_id_share_the_passages_of_a_day() -> None:
    owner = FakeOwner([row()])
    assert [bool(ask(owner, session=None)) for _ in range(2)] == [True, False]


def test_at_most_two_passages_are_shown() -> None:
    text = ask(FakeOwner([row(letter * 8) for letter in "abcd"]))
    assert [letter * 8 in text for letter in "abcd"] == [True, True, False, False]


def test_session_gets_a_bounded_number_of_passages() -> None:
    owner = FakeOwner()
    for number in range(MOST_OF_SESSION):
        owner.rows = [row(f"{number:08}")]
        ask(owner)
    assert ask(owner) == ""
    with told_session(sessions_folder(os.environ), Path("/"), "s1", 0.0) as told:
        assert len((told.cursor or "").split()) == MOST_OF_SESSION - 1


@pytest.mark.parametrize(
    "prompt",
    [
        *("", "  \n", "yes", "Continue.", "ok, go ahead please", "do it again", "thanks, looks good", "why?"),
        *("/compact", "/review the last commit", "!ls -la /tmp", "```python\nimport os\nprint(os.name)\n```"),
        "2026-01-02T10:00:00Z ERROR pool closed\n2026-01-02T10:00:01Z ERROR pool closed\n",
        'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    main()\n',
        "diff --git a/x.py b/x.py\nindex 1234567..89abcde 100644\n--- a/x.py\n+++ b/x.py\n@@ -1 @@\n-a\n+b\n",
        "~~~\nHow do we restore the Heron database from its backup?",
        None,
    ],
)
def test_prompt_without_a_question_makes_no_call(prompt: str | None) -> None:
    owner = FakeOwner([row()])
    assert (ask(owner, prompt), owner.calls) == ("", [])


@pytest.mark.parametrize(
    "prompt",
    [
        *(
            QUESTION,
            "/srv/app/main.py fails, why is that?",
            "数据库备份保留多久",
            "Wie lange bleiben Backups liegen?",
            "पुराने बैकअप कब हटाए जाते हैं?",
            "متى تحذف النسخ القديمة؟",
        ),
        "See below.\n```\ncode()\n```\nWhich port does it use?",
    ],
)
def test_questions_are_sent_without_code(prompt: str) -> None:
    owner = FakeOwner()
    ask(owner, prompt)
    (call,) = owner.calls
    assert "code()" not in call["query"]


def test_long_prompt_is_cut_before_it_is_sent() -> None:
    prompt = f"{QUESTION}\n" + "some words about the weather of today.\n" * 3_000 + "Which port is free?"
    sent = question_of(prompt)
    assert len(prompt) > 100_000
    assert len(sent) <= 4_010
    assert (sent.startswith(QUESTION), sent.endswith("Which port is free?")) == (True, True)


@pytest.mark.parametrize(
    "prompt",
    [
        "(" * 100_000,
        "def " + "x" * 100_000,
        "a'" * 50_000,
        "if" + " x" * 50_000,
        "a " * 50_000,
        "`" * 99_999,
        "\n" * 100_000,
        "[" * 9 + "\ud800",
    ],
)
def test_odd_prompts_are_accepted(prompt: str) -> None:
    assert ask(FakeOwner([row()]), prompt) in ("", ask(FakeOwner([row()]), QUESTION, "other"))


@pytest.mark.parametrize(
    "owner",
    [
        *(FakeOwner(failure=failure) for failure in (NoHookOutput("x"), OSError("x"), ValueError("x"))),
        *(FakeOwner([row(), {"match": "strong"}]), FakeOwner([row("too long a key")])),
        *(FakeOwner([row(snippet="x" * 9_000)]), FakeOwner([None])),  # type: ignore[list-item]
    ],
)
def test_failure_is_silence(owner: FakeOwner) -> None:
    assert ask(owner) == ""


def test_hook_is_silent_if_the_state_folder_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file", encoding="utf-8")
    assert ask(FakeOwner([row()])) == ""


def test_hook_is_silent_while_another_prompt_of_the_session_is_answered() -> None:
    owner = FakeOwner([row()], until=time.monotonic())
    with told_session(sessions_folder(os.environ), Path("/"), "s1", 0.0):
        assert ask(owner) == ""


def test_control_characters_of_notes_are_not_printed() -> None:
    text = ask(FakeOwner([row(title="a\nb\x1b[31m", snippet="one\n\x1b]0;two")]))
    assert "\x1b" not in text
    assert "> one\n> " in text
