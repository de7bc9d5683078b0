"""The commands `lithos wait` and `lithos events`."""

from __future__ import annotations

from typing import Final

from lithos.server.command.declaring import CliCommand, count, flag, number, take

_FILTERS: Final = (
    take("--types A,B", "only events of these types"),
    take("--tags A,B", "only events with one of these tags"),
)
seconds = number("_seconds", float, lambda seconds: 0 <= seconds < float("inf"))

COMMANDS: Final = (
    CliCommand("wait", "wait for an event and print it as JSON; exit 3 if none arrives in time",
        "lithos.events.commands_events:run_wait", (
        *_FILTERS,
        take("--task ID", "only events of this task"),
        take("--since CURSOR",
            "only events after the event with this id, including existing events", alone=True),
        take("--cursor NAME", "continue after the last event returned under this name", alone=True),
        take("--timeout S", "seconds to wait (default: no limit)", seconds),
    ), group="read and search", place=160),
    CliCommand("events", "print events as JSON, one per line", "lithos.events.commands_events:run_events", (
        *_FILTERS,
        take("--since CURSOR", "start after the event with this id"),
        take("--limit N", "stop after N events", count),
        flag("--no-follow",
            "stop after the newest event instead of waiting for more", action="store_false", dest="follow"),
    ), group="read and search", place=170),
)  # fmt: skip
