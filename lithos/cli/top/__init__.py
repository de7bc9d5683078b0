"""`lithos top`: polls a server, compares two polls, draws.

Run by `lithos.cli`.
Never here: anything the server imports.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import trio
from attrs import define, field

from lithos.cli.commands.events import Record
from lithos.cli.output import print_json
from lithos.cli.session import CommandFailed, Session
from lithos.cli.top.view import View
from lithos.cli.top.watch import sample

INTERVAL = 1.0


def run_top(session: Session) -> int:
    """Show until the person leaves, or print one sample with `--json`; returns 0."""
    interval = session.invocation.typed.get("interval", INTERVAL)
    if session.invocation.as_json:
        told = _Sample()
        trio.run(partial(sample, session, interval, told))
        print_json(told.as_json())
        return 0
    try:
        from lithos.cli.top.screen import show_live
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "textual":
            raise
        raise CommandFailed(
            "`lithos top` draws with the library textual, which is not installed. Install it with: "
            "pip install 'lithos-server[top]'. One sample without it: lithos top --json."
        ) from missing
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandFailed("`lithos top` needs a terminal. For a program: lithos top --json.")
    show_live(session, interval)
    return 0


@define
class _Sample:
    """The audience of one sample."""

    view: View | None = None
    events: list[Record] = field(factory=list)
    refusal: str | None = None

    def show(self, view: View) -> None:
        self.view = view

    def miss(self, reason: str) -> None:
        raise CommandFailed(reason)

    def tell(self, event: Record) -> None:
        self.events.append(event)

    def lack_events(self, reason: str) -> None:
        self.refusal = reason

    def as_json(self) -> dict[str, Any]:
        """The view with the events of its interval, None when the server does not tell them."""
        assert self.view is not None
        return {**self.view.as_json(), "events": None if self.refusal else self.events}
