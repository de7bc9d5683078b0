"""Command line: parses arguments, runs one command, prints its result and exits (docs/spec/cli-config.md).

Exit codes: 0 = done, 1 = failed, 2 = usage or configuration error, 3 = a wait timed out, 4 = another process
owns the data directory. The modules of a command are imported only when the command runs, so that `--help`
and `--version` answer at once. This module contains no server code, and no other Lithos module imports it.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from importlib import import_module
from typing import Any

from attrs import evolve

from lithos.app.options import COMMANDS, parse_arguments
from lithos.kernel.operating_system import refusal
from lithos.server.command.declaring import Invocation

FAILED = 1
#: Exit code if Lithos cannot run as it is called or configured, or on this system.
UNUSABLE = 2


def is_hook(argv: Sequence[str]) -> bool:
    """Return whether the arguments run this program as a client's hook."""
    return "--hook" in argv and any(each.hook and each.name in argv for each in COMMANDS.values())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = sys.argv[1:] if argv is None else argv
    if is_hook(given):
        return _run_hook(given)
    invocation = parse_arguments(given)
    if reason := refusal():
        print(reason, file=sys.stderr)
        return UNUSABLE
    try:
        code = _run(invocation)
        sys.stdout.flush()
    except BrokenPipeError:
        # The program that read the output has ended (`lithos search … | head`), so a message would not be
        # read.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (KeyboardInterrupt, BaseExceptionGroup) as failure:
        if isinstance(failure, BaseExceptionGroup) and failure.subgroup(KeyboardInterrupt) is None:
            raise
        return 130
    return code


def _run_hook(argv: Sequence[str]) -> int:
    """Run a client's hook.

    The hook fails silently, even with wrong arguments, because an error would stop the client.
    """
    from lithos.server.command.hook_failsafe import promise_silence

    promise_silence()
    try:
        with open(os.devnull, "w") as silence, redirect_stderr(silence):
            invocation = parse_arguments(argv)
            return _call(invocation.declared.hook, invocation)
    except SystemExit:  # The parser has exited after `--help`, which it has already printed.
        return 0


def _run(invocation: Invocation) -> int:
    from lithos.server.command.streams import hold_standard_streams, remember_signals

    hold_standard_streams()
    command, serves = invocation.declared, invocation.command == "serve"
    signals = [remember_signals()] if serves else []
    if serves:
        gc.disable()  # Scanning the modules takes time, so collection is off until the server starts.
    from lithos.app.serving.here import LOCAL
    from lithos.server.command.session import CommandFailed, load_session

    invocation = evolve(invocation, local=LOCAL)
    if command.reads_databases:
        LOCAL.declare()
    try:
        if not command.needs_session:
            return _call(command.runs, invocation)
        session = load_session(invocation)
        if serves:
            from lithos.server.command.output import log_bugs

            log_bugs()
        from lithos.server.command.failures import explained_failures

        with explained_failures():
            return _call(command.runs, session, *signals)
    except CommandFailed as failure:
        from lithos.server.command.output import report_failure

        report_failure(failure, serves=serves)
        return failure.exit_code


def _call(place: str, *given: Any) -> int:
    """Import a module and call a function in it. `place` has the form `module:function`."""
    module, _, function = place.partition(":")
    code: int = getattr(import_module(module), function)(*given)
    return code
