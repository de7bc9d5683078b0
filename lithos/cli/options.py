"""The argument parser: commands (queries, maintenance, backups, checks) and their options.

Global options may come before or after the command.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from attrs import frozen

from lithos import __version__
from lithos.core.errors import InvalidInput
from lithos.core.principals import check_agent
from lithos.core.times import parse_time

#: `core.findings.SCOPES` and `core.evaluation.questions.MODES`; importing them would take longer than all
#: else that a hook does. `tests/cli/test_options.py` compares.
SCOPES = ("indices", "graph", "provenance_projection")
TEST_MODES = ("hybrid", "fulltext", "semantic", "graph", "retrieve")


def add_maintenance(add: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Add the commands; `add` makes the parser for a name and a help text."""
    _add_reindex(add("reindex", "bring the search indexes in line with the notes"))
    _add_reconcile(add("reconcile", "repair what is derived from the notes; the notes stay as they are"))
    _add_recalibrate(add("recalibrate-salience", "lift the salience of notes that sank too low"))
    _add_extract(add("extract-entities", "find the names in all notes, by which they are filtered and found"))


def _add_reindex(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--clear", action=argparse.BooleanOptionalAction, help="begin with empty indexes (default: no)"
    )
    parser.add_argument("--force", dest="clear", action="store_true", help="the same as --clear")


def _add_reconcile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-s", "--scope", choices=("all", *SCOPES), help="what to repair, each by itself (default: all)"
    )
    parser.add_argument(
        "--accept-vanished",
        action="store_true",
        help="drop the notes whose files have vanished, also from a running server; nothing else",
    )
    parser.add_argument(
        "--forget-questions",
        action="store_true",
        help="forget questions that notes were cited for, also in a running server; nothing else",
    )
    questions = parser.add_argument_group(
        "which questions --forget-questions forgets, all conditions together"
    )
    questions.add_argument("--note", metavar="ID", help="that this note was cited for")
    questions.add_argument("--agent", metavar="ID", help="that this agent was the first to ask")
    questions.add_argument(
        "--since", type=_time, metavar="TIME", help="asked last at or after this time (ISO 8601)"
    )
    questions.add_argument(
        "--until", type=_time, metavar="TIME", help="asked last at or before this time (ISO 8601)"
    )
    _add_dry_run(parser)
    parser.add_argument("--json-output", dest="as_json", action="store_true", help="the same as --json")


def _add_recalibrate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--floor", type=_fraction, metavar="F", help="least salience, 0 to 1 (default: lcma.salience_floor)"
    )
    _add_dry_run(parser)


def _add_extract(parser: argparse.ArgumentParser) -> None:
    _add_dry_run(parser)
    parser.add_argument(
        "--force",
        action="store_true",
        help="also replace entities that a person chose; needs lcma.write_entities",
    )


def _add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only tell what would change")


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError(text)
    return value


def add_backups(add: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Add the commands; `add` makes the parser for a name and a help text."""
    backup = add("backup", "copy everything that cannot be rebuilt, also while a server runs")
    backup.add_argument("directory", metavar="DIR", help="where to; empty or absent")
    restore = add("restore", "put a verified backup in the place of the data directory")
    restore.add_argument("source", metavar="DIR-or-TAR", help="what `lithos backup` or `export` made")
    restore.add_argument(
        "--force", action="store_true", help="also where there is content; it is moved aside, not deleted"
    )
    export = add("export", "write notes, agents, tasks, claims, findings and edges as JSON lines")
    export.add_argument(
        "file", metavar="FILE", nargs="?", help="a new file; - for stdout (default for jsonl)"
    )
    export.add_argument(
        "--format", choices=("jsonl", "tar"), help="tar: a backup in one archive (default: jsonl)"
    )


def _add_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="a file or folder; its kind is recognised")
    parser.add_argument("--from", dest="kind", metavar="KIND", help="its kind; an unknown one lists them all")
    parser.add_argument("--into", metavar="FOLDER", help="folder below the notes (default: the top)")
    parser.add_argument(
        "--agent", metavar="NAME", help="who imports, for events and history (default: import)"
    )
    parser.add_argument(
        "--recreate", action="store_true", help="also what was imported before and deleted here"
    )
    _add_dry_run(parser)


def add_checks(add: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Add the commands; `add` makes the parser for a name and a help text."""
    validate = add("validate", "look for mistakes in the note files; nothing is changed without --fix")
    validate.add_argument(
        "--fix",
        nargs="?",
        const=True,
        choices=("ids",),
        help="write missing titles and authors; with `ids` also missing ids, and new ones for duplicates",
    )
    validate.add_argument("--no-fix", dest="fix", action="store_false", help="only look (default)")
    validate.add_argument("--yes", action="store_true", help="do not ask before --fix changes files")
    validate.add_argument("--all", dest="everything", action="store_true", help="list infos and all entries")
    validate.add_argument("--strict", action="store_true", help="exit 1 also when warnings remain")
    _add_evaluate(add("evaluate", "ask the questions of a file and check that the right notes are found"))
    add("doctor", "check the whole installation and say what to do; exit 1 when something is wrong")


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Ask the questions of a file and check that the right notes are found: a running server over HTTP, "
        "else a copy of the files, which stay as they are. Exit 1 when a test fails or is worse than the "
        "baseline. A server is asked as the agent `evaluate`: mode retrieve leaves receipts and statistics "
        "there, as every retrieval does."
    )
    parser.add_argument("file", metavar="FILE", help="YAML, or JSON lines, of questions and expected notes")
    parser.add_argument(
        "--mode",
        choices=TEST_MODES,
        help="how to search, whatever the questions say (default: what each says, else hybrid)",
    )
    parser.add_argument(
        "--k", type=_rank, metavar="N", help="cut of hit@k and recall@k, 1 to 50 (default: 5)"
    )
    parser.add_argument(
        "--save", metavar="PATH", help="write a baseline: the ranks of this run; replaces an older one"
    )
    parser.add_argument(
        "--against", metavar="PATH", help="compare with this baseline; exit 1 when one is worse"
    )
    parser.add_argument(
        "--from-receipts",
        action="store_true",
        help="write FILE, which must not exist, from what agents asked and cited; nothing is asked",
    )


def _rank(text: str) -> int:
    rank = int(text)
    if not 1 <= rank <= 50:
        raise ValueError(text)
    return rank


#: Clients that `lithos connect` knows.
CLIENTS = (
    "claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini-cli", "windsurf", "zed", "opencode",
    "openclaw", "agent-zero",
)  # fmt: skip
#: `core.principals.RIGHTS`, and days that a token may live.
RIGHTS = ("read", "write", "admin")
LONGEST_LIFE = 36_500
#: Shells that `lithos completion` knows.
SHELLS = ("bash", "zsh")

_DESCRIPTION = "A local knowledge server that many AI agents share: Markdown notes over MCP."
_EPILOG = """\
examples:
  lithos serve -t http                  serve ./data over HTTP for many agents
  lithos serve -t stdio                 serve one client over stdin and stdout
  lithos -d ~/vault search "raft log"   search the notes in ~/vault/knowledge
  lithos wait --task ID --timeout 600   wait until something happens to a task
exit codes: 0 done, 1 failed, 2 usage or configuration, 3 wait timed out, 4 data directory in use
"""


@frozen
class Invocation:
    """The parsed arguments; `typed` holds only options that were given explicitly."""

    command: str
    config: Path | None
    data_dir: Path | None
    as_json: bool
    typed: dict[str, Any]


def parse_arguments(argv: Sequence[str]) -> Invocation:
    """Parse, or exit with 2 and a usage message."""
    given = vars(make_parser().parse_args(argv))
    return Invocation(
        command=given.pop("command"),
        config=given.pop("config", None),
        data_dir=given.pop("data_dir", None),
        as_json=given.pop("as_json", False),
        typed=given,
    )


def make_parser() -> argparse.ArgumentParser:
    """All commands and options: for parsing, for shell completion and for the reference."""
    shared = _global_options()
    parser = argparse.ArgumentParser(
        prog="lithos",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[shared],
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("--version", action="version", version=f"lithos {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, help_text: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=help_text,
            description=help_text[0].upper() + help_text[1:] + ".",
            parents=[shared],
            argument_default=argparse.SUPPRESS,
        )

    _add_serve(add("serve", "serve the notes to agents over MCP"))
    _add_search(add("search", "search the notes"))
    _add_brief(add("brief", "print a briefing of the running server: what its notes say, within a budget"))
    _add_checkpoint(add("checkpoint", "keep what a session learned as a note of the running server"))
    add("stats", "print numbers about the notes and their indexes")
    _add_inspect(add("inspect", "look at the state of the server, its agents, tasks or one note"))
    _add_audit(add("audit", "tell who read which note"))
    _add_history(add("history", "list the versions of a note, what changed, or the deleted notes"))
    _add_restore_note(add("restore-note", "bring an earlier version of a note back, also of a deleted one"))
    _add_undo(add("undo", "take the changes of one agent back; what others changed stays"))
    _add_wait(add("wait", "wait for an event and print it as JSON; exit 3 when none came in time"))
    _add_events(add("events", "print events as JSON, one a line"))
    add_maintenance(add)
    add_checks(add)
    add_backups(add)
    _add_import(add("import", "bring notes of another program in; the source stays as it is"))
    _add_top(add("top", "show what a running server does, live in the terminal"))
    _add_demo(add("demo", "watch two agents share notes and work, on a folder that is thrown away"))
    _add_token(add("token", "create, list and revoke tokens: who may use the server, and what they may do"))
    _add_connect(
        add("connect", "connect a client: print what it needs, or write it into its own configuration")
    )
    add("skill", "print the skill (SKILL.md) that teaches an agent to use Lithos")
    _add_bundle(
        add("bundle", "write the published forms: server.json, the .mcpb bundle, the plugin marketplace")
    )
    _add_completion(add("completion", "print a script that completes commands and options in a shell"))
    return parser


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stay",
        action="store_true",
        help="play a day of six agents and serve its console until Ctrl+C; with --vault beside a copy of it",
    )
    parser.add_argument("--port", type=int, metavar="N", help="port of the console (default: a free one)")


def _global_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    group = options.add_argument_group("global options")
    group.add_argument("-c", "--config", type=Path, metavar="PATH", help="YAML configuration file")
    group.add_argument("-d", "--data-dir", type=Path, metavar="PATH", help="data directory (default: ./data)")
    group.add_argument(
        "--vault",
        type=Path,
        metavar="PATH",
        help="serve this folder of Markdown files where it lies; state goes to the data directory",
    )
    group.add_argument("--json", dest="as_json", action="store_true", help="print JSON only")
    group.add_argument("--telemetry-console", action="store_true", help="print telemetry on stderr")
    return options


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-t", "--transport", choices=("stdio", "sse", "http"), help="how clients connect (default: stdio)"
    )
    parser.add_argument("--host", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("-p", "--port", type=int, help="port to listen on (default: 8765; 0: any)")
    parser.add_argument(
        "--watch", action=argparse.BooleanOptionalAction, help="notice edits by other programs"
    )
    parser.add_argument("--tools", choices=("core", "standard", "full"), help="which tools to list")


def _add_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", help="what to look for")
    mode = parser.add_mutually_exclusive_group()
    for name, text in (
        ("fulltext", "by words"),
        ("semantic", "by meaning"),
        ("hybrid", "by both (default)"),
    ):
        mode.add_argument(f"--{name}", dest="mode", action="store_const", const=name, help=text)
    parser.add_argument("-n", "--limit", type=int, help="most results (default: 5)")


def _add_brief(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "query", metavar="QUERY", nargs="?", help="what it is about (--hook without: the project's name)"
    )
    parser.add_argument("--task", metavar="ID", help="the task that it is for")
    parser.add_argument("--budget", type=_count, metavar="N", help="most tokens (default: 2000; --hook: 800)")
    parser.add_argument(
        "--agent", type=_agent, metavar="NAME", help="who asks, for the audit and private notes"
    )
    parser.add_argument("--since", metavar="CURSOR", help="only what changed after this cursor of an answer")
    parser.add_argument(
        "--hook",
        action="store_true",
        help="for a client: at most 800 tokens, and without a server nothing and exit 0, in a second",
    )
    parser.add_argument(
        "--session", metavar="ID", help="never repeat to this session what was printed before"
    )
    _add_client(parser)


def _add_client(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--client", metavar="NAME", help="the client's name: without --agent the agent is NAME@HOST"
    )


def _add_checkpoint(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Keep a text as a note below checkpoints/: one note for each session, each text once. "
        "Give it with --text, in a FILE, or on stdin."
    )
    parser.add_argument("file", metavar="FILE", nargs="?", help="the text; - for stdin")
    parser.add_argument("--text", metavar="TEXT", help="the text, at most 16,000 characters")
    parser.add_argument("--session", metavar="ID", help="whose note it joins (default: the agent's of today)")
    parser.add_argument("--agent", type=_agent, metavar="NAME", help="who keeps it (default: CLIENT@HOST)")
    _add_client(parser)
    parser.add_argument(
        "--hook",
        action="store_true",
        help="for a client: keep the text, or without one remind the agent; silent without a server, exit 0",
    )


def _add_bundle(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory", metavar="DIR", help="where to; empty, absent, or written by this command"
    )
    parser.add_argument(
        "--name", metavar="NAME", help="the name in the MCP registry, as io.github.OWNER/NAME"
    )
    parser.add_argument("--image", metavar="REFERENCE", help="the container image, with its tag")


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    subjects = parser.add_subparsers(dest="subject", required=True, metavar="SUBJECT")
    shared = _global_options()

    def add(name: str, help_text: str) -> argparse.ArgumentParser:
        return subjects.add_parser(name, help=help_text, parents=[shared], argument_default=argparse.SUPPRESS)

    add("health", "components and their state; exit 1 when degraded")
    add("agents", "agents that were here")
    tasks = add("tasks", "open tasks with claims, findings and blockers, newest first")
    tasks.add_argument("--all", dest="closed", action="store_true", help="closed ones too")
    document = add("doc", "one note; exit 1 when there is none")
    document.add_argument(
        "document", metavar="ID-PATH-or-TITLE", help="note id, path below knowledge/, or title"
    )
    document.add_argument("--content", action="store_true", help="print the text as well")


def _add_audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-a", "--agent", metavar="ID", help="only what this agent read")
    parser.add_argument("-s", "--since", metavar="TIME", help="only what is later than this time (ISO 8601)")
    parser.add_argument("-n", "--limit", type=_count, metavar="N", help="most rows (default: 50)")
    parser.add_argument("--doc", metavar="ID", help="only reads of this note")


def _add_history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("note", metavar="ID-or-PATH", nargs="?", help="note id, or path below knowledge/")
    parser.add_argument(
        "--diff", metavar="A..B", help="what changed from version A to B; A alone: from the one before it"
    )
    parser.add_argument("--deleted", action="store_true", help="list the notes that can be brought back")
    parser.add_argument("-n", "--limit", type=_count, metavar="N", help="most rows (default: 20)")


def _add_restore_note(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("note", metavar="ID", help="note id, or path below knowledge/")
    # `--version` alone is the program's.
    parser.add_argument(
        "--version", dest="note_version", type=_count, metavar="N", required=True, help="which version"
    )


def _add_undo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agent", metavar="NAME", required=True, help="whose changes")
    parser.add_argument(
        "--since", type=_time, metavar="TIME", required=True, help="made at or after this time (ISO 8601)"
    )
    parser.add_argument("--until", type=_time, metavar="TIME", help="made before this time (default: now)")
    _add_dry_run(parser)


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--types", metavar="A,B", help="only events of these types")
    parser.add_argument("--tags", metavar="A,B", help="only events with one of these tags")


def _add_wait(parser: argparse.ArgumentParser) -> None:
    _add_filters(parser)
    parser.add_argument("--task", metavar="ID", help="only events of this task")
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument("--since", metavar="CURSOR", help="id of an event; what came after it counts too")
    begin.add_argument("--cursor", metavar="NAME", help="go on after what this name was told, and remember")
    parser.add_argument("--timeout", type=_seconds, metavar="S", help="seconds to wait (default: for ever)")


def _add_events(parser: argparse.ArgumentParser) -> None:
    _add_filters(parser)
    parser.add_argument("--since", metavar="CURSOR", help="id of an event; begin after it")
    parser.add_argument("--limit", type=_count, metavar="N", help="end after so many")
    parser.add_argument(
        "--no-follow", dest="follow", action="store_false", help="end with the newest event there is"
    )


def _add_top(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--interval", type=_pause, metavar="S", help="seconds between two looks (default: 1)")


def _add_connect(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print what a client needs to reach this server, ready to paste. With --write it is put into the "
        "client's own configuration file, where every other byte stays; a backup is kept beside it, and "
        "--remove gives the file back as it was."
    )
    parser.add_argument(
        "client",
        metavar="CLIENT",
        nargs="?",
        choices=CLIENTS,
        default=None,  # a default that is left out counts as a wrong choice
        help=f"one of {', '.join(CLIENTS)}",
    )
    does = parser.add_mutually_exclusive_group()
    does.add_argument("--write", action="store_true", help="put the entry into the client's configuration")
    does.add_argument("--remove", action="store_true", help="take the entry out again")
    does.add_argument(
        "--list", action="store_true", help="tell which clients are here, and what is connected"
    )
    parser.add_argument(
        "--scope",
        choices=("user", "project"),
        help="whose configuration: yours, or that of the project in this folder (default: user)",
    )
    parser.add_argument(
        "--transport",
        choices=("http", "stdio"),
        help="how it connects (default for --write: stdio; http in a project, and for agent-zero)",
    )
    parser.add_argument("--name", metavar="NAME", help="what the entry is called (default: lithos)")
    parser.add_argument(
        "--file", type=Path, metavar="PATH", help="the client's configuration file, where it is elsewhere"
    )
    parser.add_argument(
        "--agent",
        type=_agent,
        metavar="ID",
        help="the agent id to use there (default: CLIENT@HOST of this machine)",
    )
    does.add_argument(
        "--plugin", metavar="DIR", help="write a plugin there: server, skill and hooks (claude-code)"
    )


def _add_token(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    shared = _global_options()

    def add(name: str, help_text: str) -> argparse.ArgumentParser:
        return actions.add_parser(name, help=help_text, parents=[shared], argument_default=argparse.SUPPRESS)

    create = add("create", "make a token and print it, once")
    create.add_argument("name", metavar="NAME", help="what to call it: letters, digits and . _ - @")
    create.add_argument("--agent", metavar="ID", help="whoever has it acts as this agent and as no other")
    create.add_argument("--rights", choices=RIGHTS, help="what it may do (default: write)")
    create.add_argument("--expires", type=_days, metavar="DAYS", help="how long it lives (default: for ever)")
    add("list", "names, rights, agents and ends; never the tokens themselves")
    revoke = add("revoke", "end a token; a running server ends its streams within 2 seconds")
    revoke.add_argument("name", metavar="NAME", help="its name")
    add("off", "ask for no named token any more, once all are revoked")


def _add_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=f"one of {', '.join(SHELLS)}")


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise ValueError(text)
    return seconds


def _pause(text: str) -> float:
    seconds = _seconds(text)
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError("give 0.1 to 3600 seconds")
    return seconds


def _days(text: str) -> float:
    days = float(text)
    if not 0 < days <= LONGEST_LIFE:
        raise argparse.ArgumentTypeError(f"give more than 0 days and at most {LONGEST_LIFE:,}")
    return days


def _agent(text: str) -> str:
    """The name of whoever uses a command."""
    try:
        return check_agent(text)
    except InvalidInput as refusal:
        raise argparse.ArgumentTypeError(refusal.message) from None


def _time(text: str) -> datetime:
    return parse_time(text)


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise ValueError(text)
    return count
