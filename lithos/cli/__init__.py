"""The command line: parse what was typed, run one command, print, exit (cli-config spec).

Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 a wait timed out, 4 the data directory is
owned by another process. Modules of a command are imported only when it runs: `--help` and
`--version` answer at once.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from lithos.cli.options import Invocation, parse_arguments

FAILED = 1
#: The module, imported only then, and the function that run a command; `serve` also wants the signals.
_RUNNERS = {
    "search": ("queries", "run_query"),
    "stats": ("queries", "run_query"),
    "inspect": ("queries", "run_query"),
    "audit": ("queries", "run_query"),
    "wait": ("events", "run_wait"),
    "events": ("events", "run_events"),
    "reindex": ("maintenance", "run_maintenance"),
    "reconcile": ("maintenance", "run_maintenance"),
    "recalibrate-salience": ("maintenance", "run_maintenance"),
    "extract-entities": ("maintenance", "run_maintenance"),
    "validate": ("validate", "run_validate"),
    "backup": ("backup", "run_backup"),
    "restore": ("backup", "run_restore"),
    "export": ("backup", "run_export"),
    "connect": ("connect", "run_connect"),
    "demo": ("demo", "run_demo"),
    "top": ("top", "run_top"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    invocation = parse_arguments(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(invocation)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has gone (`lithos search … | head`); there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        return 130
    return code


def _run(invocation: Invocation) -> int:
    from lithos.cli.signals import remember_signals
    from lithos.cli.streams import hold_standard_streams

    hold_standard_streams()
    serves = invocation.command == "serve"
    signals = remember_signals() if serves else ()
    if serves:
        gc.disable()  # until it serves: the modules stay, and looking through them again takes a fifth longer
    from lithos.cli.session import CommandFailed, load_session

    try:
        if invocation.command == "doctor":  # it tells what is wrong with the configuration, too
            from lithos.cli.doctor import run_doctor

            return run_doctor(invocation)
        if invocation.command == "completion":  # a shell that starts wants no words about a configuration
            from lithos.cli.completion import run_completion

            return run_completion(invocation)
        session = load_session(invocation)
        from lithos.cli.failures import explained_failures

        with explained_failures():
            if serves:
                from lithos.cli.serve import run_serve

                return run_serve(session, signals)
            module, function = _RUNNERS[invocation.command]
            code: int = getattr(import_module(f"lithos.cli.{module}"), function)(session)
            return code
    except CommandFailed as failure:
        print(f"lithos: {failure}", file=sys.stderr)
        return failure.exit_code
