"""Check for required tokens without parsing the token file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lithos.access.files.tokens import LOCK, TOKENS, TokenStore, TokensUnreadable, read_tokens
from lithos.server.files_tokens import asks_for_tokens

NOW = datetime(2026, 3, 4, tzinfo=UTC)


def remove_tokens(private: Path) -> None:
    (private / TOKENS).unlink()


def damage_tokens(private: Path) -> None:
    (private / TOKENS).write_text("{")


def put_a_folder_there(private: Path) -> None:
    (private / TOKENS).unlink()
    (private / TOKENS).mkdir()


def remove_both(private: Path) -> None:
    (private / TOKENS).unlink()
    (private / LOCK).unlink()


def ask_no_more(private: Path) -> None:
    TokenStore(private).revoke("ci")
    TokenStore(private).stop_asking()


def become_unreadable(private: Path) -> None:
    for path in private.iterdir():
        path.unlink()
    private.rmdir()
    private.write_text("no folder")


@pytest.mark.parametrize(
    "change",
    [lambda _: None, remove_tokens, damage_tokens, put_a_folder_there, remove_both, ask_no_more,
     become_unreadable],
)  # fmt: skip
def test_quick_token_check_agrees_with_the_full_reader(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    private = tmp_path / ".lithos"
    assert not asks_for_tokens(private)
    TokenStore(private).create("ci", "read", "bot", NOW, None)
    change(private)
    try:
        wanted = read_tokens(private) is not None
    except TokensUnreadable:
        wanted = True
    assert asks_for_tokens(private) == wanted
