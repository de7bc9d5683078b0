"""The command line: parse arguments, run one command, print, exit (docs/spec/cli-config.md).

Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 a wait timed out, 4 the data directory is
owned by another process. Modules of a command are imported only when it runs: `--help` and
`--version` answer at once.
Never here: what a server does; nothing of Lithos imports it.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from importlib import import_module

from lithos.cli.options import Invocation, parse_arguments

FAILED = 1
#: The module, imported only then, and the function that run a command; `serve` also wants the signals.
_RUNNERS = {
    "search": ("commands.queries", "run_query"),
    "brief": ("briefing.brief", "run_brief"),
    "stats": ("commands.queries", "run_query"),
    "inspect": ("commands.queries", "run_query"),
    "audit": ("commands.queries", "run_query"),
    "history": ("commands.queries", "run_query"),
    "restore-note": ("commands.queries", "run_query"),
    "undo": ("commands.queries", "run_query"),
    "wait": ("commands.events", "run_wait"),
    "events": ("commands.events", "run_events"),
    "reindex": ("commands.maintenance", "run_maintenance"),
    "reconcile": ("commands.maintenance", "run_maintenance"),
    "recalibrate-salience": ("commands.maintenance", "run_maintenance"),
    "extract-entities": ("commands.maintenance", "run_maintenance"),
    "validate": ("commands.checks", "run_validate"),
    "evaluate": ("evaluating.command", "run_evaluate"),
    "backup": ("commands.backup", "run_backup"),
    "restore": ("commands.backup", "run_restore"),
    "export": ("commands.backup", "run_export"),
    "checkpoint": ("checkpoint.command", "run_checkpoint"),
    "bundle": ("bundle.command", "run_bundle"),
    "connect": ("connecting.command", "run_connect"),
    "import": ("importing.command", "run_import"),
    "token": ("tokens.command", "run_token"),
    "demo": ("demo.play", "run_demo"),
    "top": ("top", "run_top"),
}

#: Commands that are hooks as well, and the modules that run these.
_HOOKS = {"brief": "briefing.hook", "checkpoint": "checkpoint.hook"}


def is_hook(argv: Sequence[str]) -> bool:
    """Whether a client runs this as its hook."""
    return "--hook" in argv and any(command in argv for command in _HOOKS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = sys.argv[1:] if argv is None else argv
    if is_hook(given):
        return _run_hook(given)
    invocation = parse_arguments(given)
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


def _run_hook(argv: Sequence[str]) -> int:
    """A hook of a client: silent in every failure, wrong arguments among them, which would stop a client."""
    from lithos.cli.hooks.silence import promise_silence

    promise_silence()
    try:
        with open(os.devnull, "w") as silence, redirect_stderr(silence):
            invocation = parse_arguments(argv)
            code: int = import_module(f"lithos.cli.{_HOOKS[invocation.command]}").run_hook(invocation)
            return code
    except SystemExit:  # of the parser; --help has printed
        return 0


def _run(invocation: Invocation) -> int:
    from lithos.cli.streams import hold_standard_streams, remember_signals

    hold_standard_streams()
    serves = invocation.command == "serve"
    signals = remember_signals() if serves else ()
    if serves:
        gc.disable()  # until it serves: the modules stay, and looking through them again takes a fifth longer
    from lithos.cli.session import CommandFailed, load_session

    try:
        if invocation.command == "doctor":  # it tells what is wrong with the configuration, too
            from lithos.cli.commands.checks import run_doctor

            return run_doctor(invocation)
        if invocation.command == "completion":  # a shell that starts wants no words about a configuration
            from lithos.cli.commands.completion import run_completion

            return run_completion(invocation)
        if invocation.command == "skill":  # the same for every configuration
            from lithos.cli.plugin.skill import run_skill

            return run_skill(invocation)
        session = load_session(invocation)
        if serves:
            from lithos.cli.output import log_bugs

            log_bugs()
        from lithos.cli.failures import explained_failures

        with explained_failures():
            if serves:
                from lithos.cli.commands.serve import run_serve

                return run_serve(session, signals)
            module, function = _RUNNERS[invocation.command]
            code: int = getattr(import_module(f"lithos.cli.{module}"), function)(session)
            return code
    except CommandFailed as failure:
        from lithos.cli.output import report_failure

        report_failure(failure, serves=serves)
        return failure.exit_code
