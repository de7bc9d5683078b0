"""Output of commands.

Commands print a JSON document or escaped text on stdout; `serve` prints startup messages.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from lithos.kernel.configuration.load import logs_json
from lithos.kernel.log import ensure_logging, get_logger
from lithos.server.command.declaring import Invocation
from lithos.server.command.session import CommandFailed, CommandSession
from lithos.server.command.streams import make_printable
from lithos.server.settings import ServerConfig


def print_json(document: Any) -> None:
    """Print a JSON document as one line on stdout. The encoding of stdout does not matter."""
    is_narrow = "utf" not in (sys.stdout.encoding or "").lower()
    json.dump(document, sys.stdout, ensure_ascii=is_narrow)
    sys.stdout.write("\n")
    sys.stdout.flush()


def print_line(text: str) -> None:
    """Print one line. Text from notes can neither control the terminal nor cause an encoding error."""
    encoding = sys.stdout.encoding or "utf-8"
    print(make_printable(text).encode(encoding, "backslashreplace").decode(encoding))


def tell(asked: CommandSession | Invocation, document: Any, lines: str | Iterable[str]) -> None:
    """Print the answer of a command. With `--json` print `document`, otherwise `lines`."""
    if asked.as_json:
        print_json(document)
        return
    for line in (lines,) if isinstance(lines, str) else lines:
        print_line(line)


def warn(text: str) -> None:
    """Print a line for the user on stderr, even if the answer is JSON."""
    print(f"lithos: {text}", file=sys.stderr)


def agrees(question: str) -> bool:
    """Ask the user a question at the terminal.

    Return False without a terminal or if the answer is not yes.
    """
    if not sys.stdin.isatty():
        return False
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def list_pairs(title: str, pairs: Mapping[str, Any]) -> list[str]:
    """Return lines with a heading and aligned pairs of names and values."""
    width = max(map(len, pairs), default=0) + 1
    return [title, *(f"  {name + ':':<{width}} {value}" for name, value in pairs.items())]


log = get_logger("lithos.serve")


def report_failure(failure: CommandFailed, *, serves: bool) -> None:
    """Print the cause of a failure on stderr.

    If `serve` logs JSON, print a log line, otherwise plain text.
    """
    if serves and logs_json(os.environ):
        ensure_logging(sys.stderr)
        log.error("server not started", reason=str(failure), exit_code=failure.exit_code)
    else:
        warn(str(failure))


def log_bugs() -> None:
    """Log an unexpected exception that ends the process as a JSON line, if the log format is JSON."""
    if logs_json(os.environ):
        sys.excepthook = lambda _, bug, __: log.error("server failed", reason=repr(bug), exit_code=1, exc=bug)


def announce(session: CommandSession, text: str, **fields: str) -> None:
    """Print a line for the operator. With the stdio transport, stdout is reserved for the protocol."""
    try:
        if session.config.of(ServerConfig).transport == "stdio":
            print(text, file=sys.stderr, flush=True)
        elif session.as_json:
            if fields:
                print_json({"status": "serving", **fields})
        else:
            print(text, flush=True)
    except OSError as failure:
        # A closed terminal must not stop the server, and the unwritten text must not cause an error at exit.
        log.warning("output closed", reason=str(failure))
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
