"""All interleavings of an agent's system calls with people's steps. No interleaving may lose text."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

import pytest

from lithos.notes.files.files import NoteFiles
from tests.people.fake_files import FakeCalls
from tests.people.model import Explored, Step, World, append, atomic, delete, explore, in_place, move, take_up

A, B = "a.md", "b.md"
NOTES = {A: "<A0>", B: "<B0>"}

SLOW, NIGHTLY = pytest.mark.slow, pytest.mark.nightly
FILE_SYSTEMS = {
    "exchange and leases": frozenset[str](),
    "a place of their own": frozenset({"beside"}),
    "a name from the beginning": frozenset({"link_unnamed"}),
    "exchange": frozenset({"lease"}),
    "leases": frozenset({"exchange"}),
    "nothing but links": frozenset({"exchange", "lease", "rename_new", "link_unnamed"}),
}
SAVES: dict[str, list[Step]] = {
    "in place": in_place(A, "<P1>"),
    "in pieces": in_place(A, "<P1>", "<P2>"),
    "append": append(A, "<P1>"),
    "atomic": atomic(A, "<P1>"),
    "moved onto it": move(B, A),
    "moved away": move(A, "c.md"),
    "delete": delete(A),
    "take-up": take_up(A),
}
SECOND: dict[str, list[Step]] = {
    "in place": in_place(A, "<Q1>"),
    "atomic": atomic(A, "<Q1>"),
    "delete": delete(A),
    "take-up": take_up(A),
}
REQUESTS: dict[str, list[Step]] = {
    "patch": [("patch", A, "<X1>")],
    "write": [("write", A, "<X1>")],
    "remove": [("remove", A)],
    "create": [("create", "c.md", "<X1>")],
    "move": [("move", A, "d.md")],
    "move onto": [("move", A, "c.md")],
    "move, then rewrite its links": [("move", A, "d.md"), ("patch", "d.md", "<X1>")],
}
#: Two notes, changed one after the other. The second request finds the files that the first request
#: displaced.
TWO: list[Step] = [("patch", A, "<X1>"), ("patch", B, "<X2>")]


BEST = FILE_SYSTEMS["exchange and leases"]
#: The fast set contains the best and the poorest file system. The slow set contains all file systems.
EXTREMES = [
    pytest.param(lacking, id=name, marks=() if name in ("exchange and leases", "nothing but links") else SLOW)
    for name, lacking in FILE_SYSTEMS.items()
]


def run(
    root: Path, lacking: frozenset[str], requests: list[Step], *people: list[Step], dies: bool = False
) -> Explored:
    return explore(lambda: World(root, NOTES, people, lacking), requests, dies=dies)


#: Saves in the fast set. Saves in place without leases have many states, so only the slow set contains them.
QUICK = ("atomic", "moved onto it", "moved away", "delete", "take-up")


def explore_all(
    root: Path,
    lacking: frozenset[str],
    requests: Iterable[str],
    *people: Iterable[list[Step]],
    dies: bool = False,
) -> Explored:
    """Explore every request with every combination of people."""
    total = Explored()
    for request in requests:
        for combination in itertools.product(*people):
            found = run(root, lacking, REQUESTS[request], *combination, dies=dies)
            total.schedules += found.schedules
            total.states += found.states
    return total


def test_single_person_during_any_request_loses_no_text(tmp_path: Path) -> None:
    """Issue 11, build 1; behaviour 1."""
    found = explore_all(tmp_path, BEST, ("patch", "remove"), SAVES.values())
    assert found.schedules > 30_000
    assert found.states > 1_000


@pytest.mark.parametrize("lacking", EXTREMES[1:])
def test_single_person_loses_no_text_without_some_system_calls(
    tmp_path: Path, lacking: frozenset[str]
) -> None:
    """Issue 11, build 1."""
    found = explore_all(tmp_path, lacking, ("patch", "remove"), [SAVES[name] for name in QUICK])
    assert found.states > 150


@pytest.mark.parametrize(
    "lacking",
    [
        pytest.param(lacking, id=name, marks=NIGHTLY if name == "exchange" else SLOW)
        for name, lacking in FILE_SYSTEMS.items()
        if name != "exchange and leases"
    ],
)
def test_save_in_place_loses_no_text_without_some_system_calls(
    tmp_path: Path, lacking: frozenset[str]
) -> None:
    """Issue 11, build 1: explores all interleavings."""
    names = ("in pieces", "append") if lacking == {"lease"} else ("in place", "append")
    found = explore_all(tmp_path, lacking, ["patch"], [SAVES[name] for name in names])
    assert found.schedules > 2_000


@pytest.mark.slow
def test_single_person_during_a_write_or_creation_loses_no_text(tmp_path: Path) -> None:
    """Issue 11, build 1: explores all interleavings."""
    found = explore_all(tmp_path, BEST, ("write", "create"), SAVES.values())
    assert found.schedules > 20_000


@pytest.mark.parametrize("lacking", [BEST, pytest.param(frozenset({"exchange"}), marks=SLOW)])
def test_process_death_during_edits_loses_no_text(tmp_path: Path, lacking: frozenset[str]) -> None:
    """behaviour 1"""
    found = explore_all(tmp_path, lacking, ["patch"], [SAVES["atomic"]], dies=True)
    assert found.schedules > 300


@pytest.mark.slow
@pytest.mark.parametrize("lacking", EXTREMES)
def test_process_death_during_any_save_loses_no_text(tmp_path: Path, lacking: frozenset[str]) -> None:
    """behaviour 1"""
    saves = [SAVES[name] for name in ("atomic", "delete")]
    found = explore_all(tmp_path, lacking, ("patch", "remove"), saves, dies=True)
    assert found.schedules > 1_000


@pytest.mark.parametrize("lacking", EXTREMES)
def test_killed_move_during_any_save_loses_no_text(tmp_path: Path, lacking: frozenset[str]) -> None:
    """behaviour 255: the saved text moves with the note, stays at its old path, or makes the move fail."""
    names = [name for name in SAVES if name in QUICK or "lease" not in lacking]
    saves = [*map(SAVES.__getitem__, names), atomic("d.md", "<P1>"), move(B, "c.md")]
    found = explore_all(tmp_path, lacking, ("move", "move onto"), saves, dies=True)
    assert found.schedules > 300


@pytest.mark.parametrize(
    "save", [pytest.param(atomic("d.md", "<P1>"), marks=SLOW), SAVES["atomic"], move(A, "e.md")]
)
def test_rewriting_a_moved_note_during_a_save_loses_no_text(tmp_path: Path, save: list[Step]) -> None:
    """behaviour 255"""
    found = explore_all(tmp_path, BEST, ["move, then rewrite its links"], [save], dies=True)
    assert found.schedules > 100


@pytest.mark.parametrize(
    "request_", [pytest.param("patch", marks=NIGHTLY), pytest.param("remove", marks=SLOW)]
)
def test_two_people_during_a_request_lose_no_text(tmp_path: Path, request_: str) -> None:
    """Issue 11, build 1: explores all interleavings."""
    others = ("atomic", "delete", "take-up") if request_ == "patch" else tuple(SECOND)
    found = explore_all(tmp_path, BEST, [request_], [SAVES["atomic"]], [SECOND[name] for name in others])
    assert found.schedules > 100_000


@pytest.mark.parametrize(
    "lacking",
    [
        pytest.param(lacking, id=name, marks=SLOW if name in ("exchange", "nothing but links") else NIGHTLY)
        for name, lacking in FILE_SYSTEMS.items()
    ],
)
def test_people_who_save_and_move_two_notes_lose_no_text(tmp_path: Path, lacking: frozenset[str]) -> None:
    """Issue 11, build 1: covers two notes. On the best file system, the process may also die at any point."""
    schedules = 0
    for name in ("moved onto it", "delete"):
        schedules += run(tmp_path, lacking, TWO, SAVES[name], move(A, B), dies=not lacking).schedules
    assert schedules > 1_000


def test_model_watcher_makes_the_same_calls_as_the_product(tmp_path: Path) -> None:
    """The reference is `NoteFiles.read`."""
    made: list[str] = []
    calls = FakeCalls(reach=made.append)
    calls.put(str(tmp_path / A), b"text")
    assert NoteFiles(tmp_path, calls).read(A).data == b"text"
    assert made == ["open", "fstat", "read"]


@pytest.mark.parametrize("blunder", ["no put back", "no look at what was removed", "no lease"])
def test_model_detects_text_loss_when_the_protocol_is_broken(
    tmp_path: Path, blunder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The invariant can fail: if a part of the protocol is missing, text is lost."""
    if blunder == "no lease":  # there is no grace period either
        monkeypatch.setattr(FakeCalls, "lease", lambda self, descriptor: None)
        monkeypatch.setattr(FakeCalls, "is_leased", lambda self, descriptor: True)
    else:
        monkeypatch.setattr("lithos.notes.files.read_lease.Watch.is_still", lambda self, path, digest: True)
        monkeypatch.setattr(
            "tests.people.model.settle", lambda calls, kept, save, leases: calls.unlink(kept.path)
        )
    request = REQUESTS["remove" if blunder == "no look at what was removed" else "patch"]
    steps = SAVES["in pieces" if blunder == "no lease" else "atomic"]
    with pytest.raises(AssertionError, match="lost"):
        run(tmp_path, BEST, request, steps)
