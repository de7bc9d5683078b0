"""`lithos reconcile --accept-vanished`: the operator's word that vanished files are meant to be gone."""

from __future__ import annotations

from functools import partial

import trio

from lithos.app.vanished import accept_vanished
from lithos.cli.output import print_json, print_line
from lithos.cli.session import CommandFailed, Session


def run_accept_vanished(session: Session) -> int:
    """List the files and give them up; 0. Raises `CommandFailed` when a server does not take it."""
    dry_run = session.invocation.typed.get("dry_run", False)
    result = trio.run(partial(accept_vanished, session.config, dry_run=dry_run))
    if session.invocation.as_json:
        print_json({"dry_run": dry_run, "vanished": list(result.paths), "accepted": result.is_taken})
    else:
        for path in result.paths:
            print_line(f"  {path}")
        print_line(_summary(len(result.paths), dry_run=dry_run, is_taken=result.is_taken))
    if result.paths and not dry_run and not result.is_taken:
        raise CommandFailed(
            "The server that owns the data directory has not taken the approval yet. It stays in .lithos/ "
            "and is taken as soon as the server looks, at the latest when it starts again."
        )
    return 0


def _summary(number: int, *, dry_run: bool, is_taken: bool) -> str:
    if not number:
        return "No files have vanished"
    if dry_run:
        return f"{number} files have vanished (dry run, nothing was changed)"
    return f"{number} vanished files given up" if is_taken else f"{number} vanished files are to be given up"
