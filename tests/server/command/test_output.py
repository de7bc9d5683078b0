"""Yes/no prompts of commands."""

from __future__ import annotations

import io
import sys

import pytest

from lithos.server.command.output import agrees


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stdin", "agreed"),
    [
        (Terminal("y\n"), True),
        (Terminal(" Yes\n"), True),
        (Terminal("\n"), False),
        (Terminal("no\n"), False),
        (io.StringIO("y\n"), False),
    ],
)
def test_prompt_accepts_yes_only_at_a_terminal(
    stdin: io.StringIO, agreed: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    assert agrees("Change 2 files?") is agreed
    assert capsys.readouterr().err == ("Change 2 files? [y/N] " if stdin.isatty() else "")
