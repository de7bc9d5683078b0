"""`lithos top`: polls a server, compares two polls, draws.

Run by `lithos.cli`.
Never here: anything the server imports.
"""

from __future__ import annotations

import sys

import trio

from lithos.cli.output import print_json
from lithos.cli.session import CommandFailed, Session
from lithos.cli.top.watch import sample

INTERVAL = 1.0


def run_top(session: Session) -> int:
    """Show until the person leaves, or print one sample with `--json`; returns 0."""
    interval = session.typed.get("interval", INTERVAL)
    if session.as_json:
        print_json(trio.run(sample, session, interval))
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
