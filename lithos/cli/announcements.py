"""What `serve` tells the person who started it."""

from __future__ import annotations

import os
import sys

from lithos.cli.output import print_json
from lithos.cli.session import Session
from lithos.telemetry import get_logger

log = get_logger("lithos.serve")


def announce(session: Session, text: str, **fields: str) -> None:
    """A line for the person who started the server; stdout belongs to the protocol on stdio."""
    try:
        if session.config.server.transport == "stdio":
            print(text, file=sys.stderr, flush=True)
        elif session.invocation.as_json:
            if fields:
                print_json({"status": "serving", **fields})
        else:
            print(text, flush=True)
    except OSError as failure:
        # A closed terminal is no reason to stop serving; the buffered rest must not fail at the exit.
        log.warning("nobody reads the output", reason=str(failure))
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
