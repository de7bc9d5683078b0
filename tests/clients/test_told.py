"""Session cursors: limited in number and locked. A damaged cursor file is ignored."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from lithos.clients.files_session_cursors import MOST_SESSIONS, SessionBusy, sessions_folder, told_session

WAIT = 0.0


def told(folder: Path, session: str = "s", data: str = "data") -> str | None:
    with told_session(folder, folder.parent / data, session, WAIT) as found:
        return found.cursor


def tell(folder: Path, cursor: str, session: str = "s", data: str = "data") -> None:
    with told_session(folder, folder.parent / data, session, WAIT) as found:
        found.store(cursor)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


def test_cursor_is_separate_for_each_session_and_data_directory(folder: Path) -> None:
    assert told(folder) is None
    tell(folder, "a long cursor")
    tell(folder, "7")
    tell(folder, "9", session="other")
    assert [told(folder), told(folder, "other"), told(folder, data="elsewhere")] == ["7", "9", None]
    (some, *_) = folder.iterdir()
    assert (some.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"\xff\x00", b"[]", b'{"cursor": 7}', b"[" * 60_000, b'{"session": "x", "cursor": "5"}'],
)
def test_damaged_cursor_file_is_ignored_and_rewritten(folder: Path, damage: bytes) -> None:
    tell(folder, "7")
    (file,) = folder.iterdir()
    file.write_bytes(damage)
    assert told(folder) is None
    tell(folder, "8")
    assert told(folder) == "8"


def test_least_recently_briefed_sessions_are_deleted(folder: Path) -> None:
    tell(folder, "1", session="oldest")
    (oldest,) = folder.iterdir()
    os.utime(oldest, (1, 1))
    (folder / "a note of somebody").write_text("stays")
    for number in range(MOST_SESSIONS):
        tell(folder, "1", session=f"s{number}")
    assert len(list(folder.iterdir())) == MOST_SESSIONS + 1
    assert told(folder, "oldest") is None
    assert told(folder, f"s{MOST_SESSIONS - 1}") == "1"


def test_concurrent_briefings_of_one_session_run_one_by_one(folder: Path) -> None:
    with (
        told_session(folder, folder, "s", WAIT),
        pytest.raises(SessionBusy),
        told_session(folder, folder, "s", WAIT),
    ):
        pass
    found: list[str | None] = []

    def second() -> None:
        with told_session(folder, folder, "s", 10) as session:
            found.append(session.cursor)

    with told_session(folder, folder, "s", WAIT) as first:
        thread = threading.Thread(target=second)
        thread.start()
        first.store("5")
    thread.join(60)
    assert found == ["5"]


def test_link_in_place_of_a_session_file_is_not_followed(folder: Path, tmp_path: Path) -> None:
    tell(folder, "7")
    (file,) = folder.iterdir()
    file.unlink()
    target = tmp_path / "precious"
    target.write_text("mine")
    file.symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        told(folder)
    assert target.read_text() == "mine"


def test_session_id_that_is_too_long_is_refused(folder: Path) -> None:
    for name in ("", "x" * 1_001):
        with pytest.raises(ValueError, match="characters"):
            told(folder, name)


def test_sessions_folder_follows_the_xdg_specification() -> None:
    assert sessions_folder({"XDG_STATE_HOME": "/s"}) == Path("/s/lithos/sessions")
    assert sessions_folder({"XDG_STATE_HOME": "s"}) == sessions_folder({})
    assert sessions_folder({}) == Path("~/.local/state/lithos/sessions").expanduser()
