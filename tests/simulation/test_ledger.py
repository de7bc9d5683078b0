"""Each check of the ledger fails when what it is about is broken."""

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
    """A change of the note that was acknowledged; version 1 makes it."""
    promise = ledger.begin(
        begin, agent, "lithos_write", f"zqa{version}z", "n" if version > 1 else None, expected
    )
    status = "updated" if version > 1 else "created"
    ledger.acknowledge(end, promise, {"id": "n", "path": PATH, "version": version, "status": status})
    return promise


@pytest.fixture
def ledger() -> Ledger:
    """A note with two acknowledged versions."""
    made = Ledger()
    kept(made, 1, 0, 1)
    kept(made, 2, 2, 3, expected=1)
    made.tasks["t"] = TaskAccount("t")
    return made


VERSIONS = {("n", 1): [b"zqa1z"], ("n", 2): [b"zqa2z"]}
EVENTS: list[Event] = [(1, "note.created", "ann", {"id": "n"}), (2, "note.updated", "ann", {"id": "n"})]


def test_what_holds_passes(ledger: Ledger) -> None:
    """No check fails without a reason."""
    ledger.read(4, "n", 2, "It says zqa2z.")
    ledger.save(PATH, "zqp9z")
    ledger.grant("t", "code", "ann", 5, 0, 1, 60)
    ledger.grant("t", "code", "bob", 6, 61, 62, 120)
    ledger.accept_fence("t", "code", 6, 63)
    ledger.check_texts(VERSIONS, {PATH: b"zqa2z"}, [b"zqp9z"])
    ledger.check_files({PATH: b"zqa2z"})
    claims = [(seq, "task.claimed", "ann", {"task_id": "t", "fence": seq}) for seq in (5, 6)]
    ledger.check_events([*EVENTS, *claims])


def later_grant(ledger: Ledger, **more: Any) -> None:
    """Two grants, the second with other values."""
    ledger.grant("t", "code", "ann", 5, 0, 1, 60)
    values = {"agent": "bob", "fence": 6, "began": 70, "ended": 71, "expires": 130} | more
    ledger.grant("t", "code", **values)


BREACHES: dict[str, Callable[[Ledger], object]] = {
    "two winners": lambda ledger: kept(ledger, 2, 2, 3, agent="bob"),
    "went from": lambda ledger: (kept(ledger, 4, 4, 5), kept(ledger, 3, 6, 7)),
    "expected version": lambda ledger: kept(ledger, 4, 4, 5, expected=2),
    "was told as": lambda ledger: [ledger.read(4, "n", 2, text) for text in ("zqa2z", "zqa2z and more")],
    "was acknowledged": lambda ledger: ledger.read(4, "n", 1, "zqa1z"),
    "not in version": lambda ledger: ledger.read(4, "n", 2, "nothing"),
    "nobody deleted it": lambda ledger: ledger.missing(4, "n"),
    "was given after": lambda ledger: later_grant(ledger, fence=4),
    "given twice": lambda ledger: later_grant(ledger, fence=5, began=0.5),
    "holds it": lambda ledger: later_grant(ledger, began=10, ended=11),
    "stale fence": lambda ledger: (later_grant(ledger), ledger.accept_fence("t", "code", 5, 72)),
    "not kept": lambda ledger: ledger.check_texts({("n", 1): [b"zqa1z"]}, {}, []),
    "is not in version 2": lambda ledger: ledger.check_texts(
        VERSIONS | {("n", 2): [b""]}, {PATH: b"zqa2z"}, []
    ),
    "is nowhere": lambda ledger: (ledger.save(PATH, "zqp9z"), ledger.check_texts(VERSIONS, {}, [])),
    "refused is there": lambda ledger: (
        ledger.refuse(4, ledger.begin(4, "bob", "lithos_write", "zqa7z", "n")),
        ledger.check_texts(VERSIONS, {PATH: b"zqa7z"}, []),
    ),
    "is not there": lambda ledger: ledger.check_files({}),
    "wrote last": lambda ledger: ledger.check_files({PATH: b"zqa1z"}),
    "repeat or go back": lambda ledger: ledger.check_events(EVENTS[::-1]),
    "0 events note.updated": lambda ledger: ledger.check_events(EVENTS[:1]),
    "2 events note.created": lambda ledger: ledger.check_events([*EVENTS, (3, *EVENTS[0][1:])]),
    "told 0 times": lambda ledger: (later_grant(ledger), ledger.check_events(EVENTS)),
    "are in the order": lambda ledger: (
        kept(ledger, 3, 4, 5, agent="bob"),
        ledger.check_events([EVENTS[0], (2, "note.updated", "bob", {"id": "n"}), (3, *EVENTS[1][1:])]),
    ),
}


@pytest.mark.parametrize("told", BREACHES)
def test_a_breach_is_told(told: str, ledger: Ledger) -> None:
    """Each invariant can fail."""
    with pytest.raises(Broken, match=told):
        BREACHES[told](ledger)


def test_what_a_power_loss_may_take_is_no_breach(ledger: Ledger) -> None:
    """What a person saved and nobody took up; what was seen in the history stays promised."""
    ledger.save(PATH, "zqp8z zqp9z")
    ledger.check_texts(VERSIONS | {("n", 3): [b"zqp8z"]}, {PATH: b"zqp9z"}, [])
    ledger.lose_power()
    ledger.check_texts(VERSIONS | {("n", 3): [b"zqp8z"]}, {}, [])
    with pytest.raises(Broken, match="zqp8z"):
        ledger.check_texts(VERSIONS, {}, [])
