"""Ledger checks. Each check must fail when its promise is broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.simulation.ledger import Broken, Ledger, Promise, TaskAccount

PATH = "a.md"
Event = tuple[int, str, str, dict[str, Any]]


def kept(
    ledger: Ledger, version: int, begin: float, end: float, *, agent: str = "ann", expected: int | None = None
) -> Promise:
    """Return a confirmed change of the note. Version 1 creates the note."""
    promise = ledger.begin(
        begin, agent, "lithos_write", f"zqa{version}z", "n" if version > 1 else None, expected
    )
    status = "updated" if version > 1 else "created"
    ledger.acknowledge(end, promise, {"id": "n", "path": PATH, "version": version, "status": status})
    return promise


@pytest.fixture
def ledger() -> Ledger:
    """Return a ledger that contains one note with two confirmed versions."""
    made = Ledger()
    kept(made, 1, 0, 1)
    kept(made, 2, 2, 3, expected=1)
    made.tasks["t"] = TaskAccount("t")
    return made


VERSIONS = {("n", 1): [b"zqa1z"], ("n", 2): [b"zqa2z"]}
EVENTS: list[Event] = [(1, "note.created", "ann", {"id": "n"}), (2, "note.updated", "ann", {"id": "n"})]


def test_kept_promises_pass_all_checks(ledger: Ledger) -> None:
    """Checks must not fail without a broken promise."""
    ledger.read(4, "n", 2, "It says zqa2z.")
    ledger.save(PATH, "zqp9z")
    ledger.grant("t", "code", "ann", 5, 0, 1, 60)
    ledger.grant("t", "code", "bob", 6, 61, 62, 120)
    ledger.accept_fence("t", "code", 6, 63)
    ledger.check_texts(VERSIONS, {PATH: b"zqa2z"}, [b"zqp9z"])
    ledger.check_files({PATH: b"zqa2z"})
    claims = [(seq, "task.claimed", "ann", {"task_id": "t", "fence": seq}) for seq in (5, 6)]
    ledger.check_events([*EVENTS, *claims])


def later_grant(ledger: Ledger, *, fence: int = 6, began: float = 70, ended: float = 71) -> None:
    """Grant one aspect twice. The second grant is for another agent."""
    ledger.grant("t", "code", "ann", 5, 0, 1, 60)
    ledger.grant("t", "code", "bob", fence, began, ended, 130)


def claim_again(ledger: Ledger, *, answered: bool = True) -> None:
    """Let Ann, who has a claim until 3600, claim the aspect again until 70. The answer may be missing."""
    ledger.grant("t", "code", "ann", 5, 0, 1, 3600)
    ledger.restart_time("t", "code", "ann", 70)
    if answered:
        ledger.grant("t", "code", "ann", 6, 10, 11, 70)


def granted_before_the_new_time(ledger: Ledger) -> None:
    claim_again(ledger)
    ledger.grant("t", "code", "bob", 7, 30, 31, 130)


def another_asks_for_less_time(ledger: Ledger) -> None:
    ledger.grant("t", "code", "ann", 5, 0, 1, 3600)
    ledger.restart_time("t", "code", "bob", 70)
    ledger.grant("t", "code", "bob", 6, 71, 72, 130)


def version_goes_back(ledger: Ledger) -> None:
    kept(ledger, 4, 4, 5)
    kept(ledger, 3, 6, 7)


def one_version_has_two_texts(ledger: Ledger) -> None:
    for text in ("zqa2z", "zqa2z and more"):
        ledger.read(4, "n", 2, text)


def stale_fence_is_taken(ledger: Ledger) -> None:
    later_grant(ledger)
    ledger.accept_fence("t", "code", 5, 72)


def text_of_a_person_is_lost(ledger: Ledger) -> None:
    ledger.save(PATH, "zqp9z")
    ledger.check_texts(VERSIONS, {}, [])


def refused_text_is_there(ledger: Ledger) -> None:
    ledger.refuse(4, ledger.begin(4, "bob", "lithos_write", "zqa7z", "n"))
    ledger.check_texts(VERSIONS, {PATH: b"zqa7z"}, [])


def grant_is_not_told(ledger: Ledger) -> None:
    later_grant(ledger)
    ledger.check_events(EVENTS)


def events_are_swapped(ledger: Ledger) -> None:
    kept(ledger, 3, 4, 5, agent="bob")
    ledger.check_events([EVENTS[0], (2, "note.updated", "bob", {"id": "n"}), (3, *EVENTS[1][1:])])


BREACHES: dict[str, Callable[[Ledger], Any]] = {
    "two winners": lambda ledger: kept(ledger, 2, 2, 3, agent="bob"),
    "went from": version_goes_back,
    "expected version": lambda ledger: kept(ledger, 4, 4, 5, expected=2),
    "was told as": one_version_has_two_texts,
    "was acknowledged": lambda ledger: ledger.read(4, "n", 1, "zqa1z"),
    "not in version": lambda ledger: ledger.read(4, "n", 2, "nothing"),
    "nobody deleted it": lambda ledger: ledger.missing(4, "n"),
    "was given after": lambda ledger: later_grant(ledger, fence=4),
    "given twice": lambda ledger: later_grant(ledger, fence=5, began=0.5),
    "holds it": lambda ledger: later_grant(ledger, began=10, ended=11),
    "stale fence": stale_fence_is_taken,
    "not kept": lambda ledger: ledger.check_texts({("n", 1): [b"zqa1z"]}, {}, []),
    "is not in version 2": lambda ledger: ledger.check_texts(VERSIONS | {("n", 2): [b""]}, {}, []),
    "is nowhere": text_of_a_person_is_lost,
    "refused is there": refused_text_is_there,
    "is not there": lambda ledger: ledger.check_files({}),
    "wrote last": lambda ledger: ledger.check_files({PATH: b"zqa1z"}),
    "repeat or go back": lambda ledger: ledger.check_events(EVENTS[::-1]),
    "0 events note.updated": lambda ledger: ledger.check_events(EVENTS[:1]),
    "2 events note.created": lambda ledger: ledger.check_events([*EVENTS, (3, *EVENTS[0][1:])]),
    "told 0 times": grant_is_not_told,
    "are in the order": events_are_swapped,
}


@pytest.mark.parametrize("answered", [True, False])
def test_repeated_claim_replaces_the_end_time(answered: bool, ledger: Ledger) -> None:
    """behaviour 93: a shorter duration ends the claim earlier, despite the first answer."""
    claim_again(ledger, answered=answered)
    ledger.grant("t", "code", "bob", 7, 71, 72, 130)


@pytest.mark.parametrize("breach", [granted_before_the_new_time, another_asks_for_less_time])
def test_repeated_claim_does_not_free_the_aspect_early(
    breach: Callable[[Ledger], Any], ledger: Ledger
) -> None:
    """The agent has the aspect until the new end time. A request by another agent changes nothing."""
    with pytest.raises(Broken, match="holds it"):
        breach(ledger)


@pytest.mark.parametrize("told", BREACHES)
def test_every_broken_promise_is_reported(told: str, ledger: Ledger) -> None:
    """Each invariant must be able to fail."""
    with pytest.raises(Broken, match=told):
        BREACHES[told](ledger)


def test_loss_by_a_power_failure_does_not_break_a_promise(ledger: Ledger) -> None:
    """A save that the server did not record may be lost. Text that was in the history stays promised."""
    ledger.save(PATH, "zqp8z zqp9z")
    ledger.check_texts(VERSIONS | {("n", 3): [b"zqp8z"]}, {PATH: b"zqp9z"}, [])
    ledger.lose_power()
    ledger.check_texts(VERSIONS | {("n", 3): [b"zqp8z"]}, {}, [])
    with pytest.raises(Broken, match="zqp8z"):
        ledger.check_texts(VERSIONS, {}, [])
