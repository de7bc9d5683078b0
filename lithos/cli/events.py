"""`lithos wait` and `lithos events`: what happens, as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import trio

from lithos.cli.feed import RESYNC, Feed, Record
from lithos.cli.output import print_json
from lithos.cli.session import CommandFailed, Session
from lithos.front.frames import event_record, resync_record
from lithos.services.event_stream import PAGE, EventFilter, Resync, parse_position
from lithos.stores.coordination import CoordinationStore
from lithos.stores.lock import is_owned

TIMED_OUT = 3


def run_wait(session: Session) -> int:
    """Print the first matching event and return 0, or 3 after the timeout."""
    return _run(partial(_wait, session))


def run_events(session: Session) -> int:
    """Print events, one a line, until there are enough or no more; returns 0."""
    follows = session.invocation.typed.get("follow", True)
    if follows and is_owned(_private(session) / "lock"):
        return _run(partial(_follow, session))
    return _print_journal(session)


def _run(command: Any) -> int:
    try:
        code: int = trio.run(command)
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt) is not None:
            raise KeyboardInterrupt from None
        raise
    return code


async def _wait(session: Session) -> int:
    typed = session.invocation.typed
    task = typed.get("task")

    def take(record: Record) -> bool:
        matches = record["type"] == RESYNC or task is None or record["payload"].get("task_id") == task
        if matches:
            print_json(record)
        return matches

    with trio.move_on_after(typed.get("timeout", float("inf"))) as patience:
        await _feed(session).follow(take)
    return TIMED_OUT if patience.cancelled_caught else 0


async def _follow(session: Session) -> int:
    left = session.invocation.typed.get("limit")

    def take(record: Record) -> bool:
        nonlocal left
        print_json(record)
        if left is not None and record["type"] != RESYNC:
            left -= 1
        return left == 0

    await _feed(session).follow(take)
    return 0


def _feed(session: Session) -> Feed:
    typed = session.invocation.typed
    return Feed(
        session, typed.get("types", ""), typed.get("tags", ""), typed.get("since"), typed.get("cursor")
    )


def _print_journal(session: Session) -> int:
    typed = session.invocation.typed
    path = _private(session) / "coordination.db"
    wanted = EventFilter.of(typed.get("types", "").split(","), typed.get("tags", "").split(","))
    left = typed.get("limit")
    for record in _read_journal(path, typed.get("since"), wanted):
        print_json(record)
        if left is not None and record["type"] != RESYNC:
            left -= 1
            if left == 0:
                break
    return 0


def _read_journal(path: Path, since: str | None, wanted: EventFilter) -> Iterator[dict[str, Any]]:
    """The journal's events after `since`, else all of them; a resync notice if that is not known."""
    if not path.is_file():
        raise CommandFailed(
            f"There are no events: {path} is missing. Name the data directory with --data-dir, "
            "or start a server there first."
        )
    store = CoordinationStore.open_read_only(path)
    try:
        position = 0 if since is None else parse_position(since)
        if since is not None and (position is None or not store.knows_position(position)):
            yield resync_record(Resync(since))
            return
        while page := store.events_after(position or 0, PAGE):
            position = page[-1].seq
            yield from (event_record(event) for event in page if wanted.passes(event))
    finally:
        store.close()


def _private(session: Session) -> Path:
    return session.config.storage.data_dir / ".lithos"
