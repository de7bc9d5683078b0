"""The commands of events."""

from __future__ import annotations

from typing import Final

from lithos.server.command.declaring import CliCommand, count, flag, number, take

_FILTERS: Final = (
    take("--types A,B", "only events of these types"),
    take("--tags A,B", "only events with one of these tags"),
)
seconds = number("_seconds", float, lambda seconds: 0 <= seconds < float("inf"))

COMMANDS: Final = (
    CliCommand("wait", "wait for an event and print it as JSON; exit 3 when none came in time",
        "lithos.events.commands_events:run_wait", (
        *_FILTERS,
        take("--task ID", "only events of this task"),
        take("--since CURSOR", "id of an event; what came after it counts too", alone=True),
        take("--cursor NAME", "go on after what this name was told, and remember", alone=True),
        take("--timeout S", "seconds to wait (default: for ever)", seconds),
    ), group="read and search", place=160),
    CliCommand("events", "print events as JSON, one a line", "lithos.events.commands_events:run_events", (
        *_FILTERS,
        take("--since CURSOR", "id of an event; begin after it"),
        take("--limit N", "end after so many", count),
        flag("--no-follow", "end with the newest event there is", action="store_false", dest="follow"),
    ), group="read and search", place=170),
)  # fmt: skip
