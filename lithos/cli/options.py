"""The commands as one table: what each takes, how it is explained, and what runs it.

The parser, its help, shell completion and the reference are made of it. Global options may come before or
after the command.
"""

from __future__ import annotations

import argparse
import functools
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from attrs import frozen

from lithos import __version__
from lithos.core.errors import InvalidInput
from lithos.core.principals import check_agent
from lithos.core.times import parse_time

#: `core.findings.SCOPES`, `core.evaluation.questions.MODES` and `core.proposals.STATUSES`; importing them
#: would take longer than all else that a hook does. `tests/cli/test_options.py` compares.
SCOPES = ("indices", "graph", "provenance_projection")
TEST_MODES = ("hybrid", "fulltext", "semantic", "graph", "retrieve")
PROPOSAL_STATUSES = ("pending", "approved", "rejected", "expired", "withdrawn")
#: Clients that `lithos connect` knows.
CLIENTS = (
    "claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini-cli", "windsurf", "zed", "opencode",
    "openclaw", "agent-zero",
)  # fmt: skip
#: Those that live elsewhere, of which it tells what to enter where.
HOSTED = ("chatgpt", "claude-ai")
#: `core.principals.TOKEN_RIGHTS`, and days that a token may live.
RIGHTS = ("metrics", "read", "write", "admin")
LONGEST_LIFE = 36_500
#: Shells that `lithos completion` knows.
SHELLS = ("bash", "zsh")

_DESCRIPTION = "A local knowledge server that many AI agents share: Markdown notes over MCP."
_EPILOG = """\
examples:
  lithos serve -t http                  serve ./data over HTTP for many agents
  lithos serve -t stdio                 serve one client over stdin and stdout
  lithos -d ~/vault search "raft log"   search the notes in ~/vault/knowledge
  lithos serve -t http --vault work=~/work --vault home=~/notes
                                        serve several vaults, each under its name
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
    #: What `--vault` was given, each as it stands; a single one that is no `NAME=PATH` is in `typed`, too.
    vaults: tuple[str, ...] = ()


#: An option or argument for `add_argument`: its names, and the rest. This has `alone` beside, for those of a
#: command that exclude each other, and `under`, the heading of those that belong together.
Taken = tuple[list[str], dict[str, Any]]


def _take(spelling: str, text: str, kind: Callable[[str], Any] | None = None, **more: Any) -> Taken:
    """What takes a value, spelled as in its help: `-n --limit N`, `query QUERY`; `kind` reads the value."""
    *names, last = spelling.split(" ")
    if last.startswith("-") or not names:
        names.append(last)
    else:
        more["metavar"] = last
    return names, {**more, "type": kind, "help": text}


def _flag(spelling: str, text: str, **more: Any) -> Taken:
    """What is given or not."""
    return spelling.split(" "), {"action": "store_true", **more, "help": text}


class Command(NamedTuple):
    """A command, or a part of one.

    `runs` names the module below `lithos.cli`, imported only then, and the function, which gets a `Session`,
    or where `needs_session` is False the `Invocation`. Which of `parts` it is has the name `chosen`.
    """

    name: str
    help: str
    runs: str = ""
    takes: Sequence[Taken] = ()
    description: str | None = None
    needs_session: bool = True
    chosen: str = ""
    parts: Sequence[Command] = ()


def _number(
    name: str, read: Callable[[str], Any], accepts: Callable[[Any], bool], wanted: str = ""
) -> Callable[[str], Any]:
    """Reads numbers that are accepted; a refusal of the parser says what is wanted, or else has the name."""

    def convert(text: str) -> Any:
        value = read(text)
        if not accepts(value):
            raise argparse.ArgumentTypeError(wanted) if wanted else ValueError(text)
        return value

    convert.__name__ = name
    return convert


_fraction = _number("_fraction", float, lambda value: 0 <= value <= 1)
_rank = _number("_rank", int, lambda rank: 1 <= rank <= 50)
_seconds = _number("_seconds", float, lambda seconds: 0 <= seconds < float("inf"))
_pause = _number("_pause", _seconds, lambda pause: 0.1 <= pause <= 3600, "give 0.1 to 3600 seconds")
_days = _number(
    "_days",
    float,
    lambda days: 0 < days <= LONGEST_LIFE,
    f"give more than 0 days and at most {LONGEST_LIFE:,}",
)
_count = _number("_count", int, lambda count: count >= 1)


def _agent(text: str) -> str:
    """The name of whoever uses a command."""
    try:
        return check_agent(text)
    except InvalidInput as refusal:
        raise argparse.ArgumentTypeError(refusal.message) from None


def _time(text: str) -> datetime:
    return parse_time(text)


_GLOBAL: Final[Sequence[Taken]] = tuple(
    (names, {**given, "under": "global options"})
    for names, given in (
        _take("-c --config PATH", "YAML configuration file", Path),
        _take("-d --data-dir PATH", "data directory (default: ./data)", Path),
        _take(
            "--vault PATH",
            "serve this folder of Markdown files where it lies; state goes to the data directory. Of several "
            "vaults: NAME=PATH for each, or the NAME of one that is configured",
            action="append",
        ),
        _flag("--json", "print JSON only", dest="as_json"),
        _flag("--telemetry-console", "print telemetry on stderr"),
    )
)
_DRY_RUN: Final = _flag("--dry-run", "only tell what would change")
_FILTERS: Final = (
    _take("--types A,B", "only events of these types"),
    _take("--tags A,B", "only events with one of these tags"),
)
_CLIENT: Final = _take("--client NAME", "the client's name: without --agent the agent is NAME@HOST")
#: Of the questions that `reconcile --forget-questions` forgets.
_WHICH: Final = "which questions --forget-questions forgets, all conditions together"
_MODE: Final[dict[str, Any]] = {"action": "store_const", "dest": "mode", "alone": True}

_COMMANDS: Final = (
    Command("serve", "serve the notes to agents over MCP", "commands.serve:run_serve", (
        _take("-t --transport", "how clients connect (default: stdio)", choices=("stdio", "sse", "http")),
        _take("--host", "address to listen on (default: 127.0.0.1)"),
        _take("-p --port", "port to listen on (default: 8765; 0: any)", int),
        _flag("--watch", "notice edits by other programs", action=argparse.BooleanOptionalAction),
        _take("--tools", "which tools to list", choices=("core", "standard", "full", "connector")),
        _take("--public-url URL", "address at which clients elsewhere reach this server; they come by OAuth"),
    )),
    Command("search", "search the notes", "commands.queries:run_search", (
        _take("query QUERY", "what to look for"),
        _flag("--fulltext", "by words", const="fulltext", **_MODE),
        _flag("--semantic", "by meaning", const="semantic", **_MODE),
        _flag("--hybrid", "by both (default)", const="hybrid", **_MODE),
        _take("-n --limit", "most results (default: 5)", int),
    )),
    Command("brief", "print a briefing of the running server: what its notes say, within a budget",
        "commands.sessions:run_brief", (
        _take("query QUERY", "what it is about (--hook without: the project's name)", nargs="?"),
        _take("--task ID", "the task that it is for"),
        _take("--budget N", "most tokens (default: 2000; --hook: 800)", _count),
        _take("--agent NAME", "who asks, for the audit and private notes", _agent),
        _take("--since CURSOR", "only what changed after this cursor of an answer"),
        _flag("--hook",
            "for a client: at most 800 tokens, and without a server nothing and exit 0, in a second"),
        _take("--session ID", "never repeat to this session what was printed before"),
        _CLIENT,
    )),
    Command("checkpoint", "keep what a session learned as a note of the running server",
        "commands.sessions:run_checkpoint", (
        _take("file FILE", "the text; - for stdin", nargs="?"),
        _take("--text TEXT", "the text, at most 16,000 characters"),
        _take("--session ID", "whose note it joins (default: the agent's of today)"),
        _take("--agent NAME", "who keeps it (default: CLIENT@HOST)", _agent),
        _CLIENT,
        _flag("--hook",
            "for a client: keep the text, or without one remind the agent; silent without a server, exit 0"),
        ),
        "Keep a text as a note below checkpoints/: one note for each session, each text once. "
        "Give it with --text, in a FILE, or on stdin.",
    ),
    Command("stats", "print numbers about the notes and their indexes", "commands.queries:run_stats"),
    Command("inspect", "look at the state of the server, its agents, tasks or one note",
        "commands.queries:run_inspect",
        chosen="subject", parts=(
            Command("health", "components and their state; exit 1 when degraded"),
            Command("agents", "agents that were here"),
            Command("tasks", "open tasks with claims, findings and blockers, newest first", takes=(
                _flag("--all", "closed ones too", dest="closed"),
            )),
            Command("doc", "one note; exit 1 when there is none", takes=(
                _take("document ID-PATH-or-TITLE", "note id, path below knowledge/, or title"),
                _flag("--content", "print the text as well"),
            )),
        ),
    ),
    Command("audit", "tell who read which note", "commands.queries:run_audit", (
        _take("-a --agent ID", "only what this agent read"),
        _take("-s --since TIME", "only what is later than this time (ISO 8601)"),
        _take("-n --limit N", "most rows (default: 50)", _count),
        _take("--doc ID", "only reads of this note"),
    )),
    Command("care", "tell which notes want care, and why; changes nothing", "commands.queries:run_care", (
        _flag("--open-tasks", "open a task for each group, unless it has one"),
        _flag("--all", "list up to 200 rows of each group", dest="everything"),
        _take("--by NAME", "who opens the tasks (default: your user name)"),
    )),
    Command("worth", "count what agents asked, read, cited and took over from each other, by day",
        "commands.queries:run_worth", (
        _take("--days N", "how many days, today with them (default: 7)", _count),
    )),
    Command("history", "list the versions of a note, what changed, or the deleted notes",
        "commands.history:run_history", (
        _take("note ID-or-PATH", "note id, or path below knowledge/", nargs="?"),
        _take("--diff A..B", "what changed from version A (or row rA) to B; A alone: from the one before"),
        _flag("--deleted", "list the notes that can be brought back"),
        _take("-n --limit N", "most rows (default: 20)", _count),
    )),
    Command("restore-note", "bring an earlier version of a note back, also of a deleted one",
        "commands.history:run_restore_note", (
        _take("note ID", "note id, or path below knowledge/"),
        # `--version` alone is the program's.
        _take("--version N", "which version", _count, dest="note_version"),
        _take("--row N", "or the row of the history with this number, listed as rN", _count, dest="note_row"),
    )),
    Command("undo", "take the changes of one agent or several back; what others changed stays",
        "commands.history:run_undo", (
        _take("--agent NAME", "whose changes; more than once for several agents", required=True,
              action="append"),
        _take("--since TIME", "made at or after this time (ISO 8601; default: all that are kept)", _time),
        _take("--until TIME", "made before this time (default: now)", _time),
        _DRY_RUN,
    )),
    Command("proposals", "list, show, approve and reject what agents propose",
        "commands.proposals:run_proposals", (
        _take("action", "list (default), show, approve or reject", nargs="?"),
        _take("ids ID", "which proposals", nargs="*"),
        _take("--status", "which are listed (default: pending)", choices=PROPOSAL_STATUSES),
        _take("--agent NAME", "list those of this agent"),
        _take("--reason TEXT", "why they are rejected; the agent hears it"),
        _take("--seal TEXT", "approve only what was shown with this seal"),
        _flag("--yes", "approve without asking"),
        _take("--by NAME", "who decides (default: your user name)"),
        ),
        "Without an action what waits is listed. show prints what would change, with signs that cannot be "
        "seen by their names; approve prints the same, and asks. Exit 1 when something stayed undecided.",
    ),
    Command("conflicts", "list, show, merge and keep what another machine wrote of notes",
        "commands.merging:run_conflicts", (
        _take("action", "list (default), show, merge or keep", nargs="?"),
        _take("paths PATH", "which conflict copies", nargs="*"),
        _flag("--all", "merge all that nobody has to decide, but those whose names people give, too"),
        _take("--keep SIDE", "what to keep where both changed the same", choices=("note", "copy", "both")),
        _take("--by NAME", "who merges (default: your user name)"),
        ),
        "Merging gives the note its next version and removes the copy, whose bytes stay in the history. What "
        "both changed in one place is left alone, unless --keep says what to keep. With keep a file is "
        "a note of its own, for good. Exit 1 when one is left.",
    ),
    Command("merge-driver", "merge two versions of a note for git; needs no server and no data directory",
        "commands.merging:run_merge_driver", (
        _take("base BASE", "the file that both began with", Path),
        _take("ours OURS", "our version, which becomes the merged one", Path),
        _take("theirs THEIRS", "their version", Path),
        _take("--path NAME", "the note's name, for messages"),
        _take("--marker-size N", "characters of a marker (default: 7)", _count),
        _take("--ours-name NAME", "what our side of a conflict is called (default: ours)"),
        _take("--theirs-name NAME", "what theirs is called (default: theirs)"),
        ),
        "Merge two versions of a note as Lithos merges: the text by lines, the frontmatter by key. What both "
        "changed stands in OURS between git's markers, and the exit code is 1. See docs/two-machines.md.",
        needs_session=False,
    ),
    Command("wait", "wait for an event and print it as JSON; exit 3 when none came in time",
        "commands.events:run_wait", (
        *_FILTERS,
        _take("--task ID", "only events of this task"),
        _take("--since CURSOR", "id of an event; what came after it counts too", alone=True),
        _take("--cursor NAME", "go on after what this name was told, and remember", alone=True),
        _take("--timeout S", "seconds to wait (default: for ever)", _seconds),
    )),
    Command("events", "print events as JSON, one a line", "commands.events:run_events", (
        *_FILTERS,
        _take("--since CURSOR", "id of an event; begin after it"),
        _take("--limit N", "end after so many", _count),
        _flag("--no-follow", "end with the newest event there is", action="store_false", dest="follow"),
    )),
    Command("reindex", "bring the search indexes in line with the notes",
        "commands.maintenance:run_reindex", (
        _flag("--clear", "begin with empty indexes (default: no)", action=argparse.BooleanOptionalAction),
        _flag("--force", "the same as --clear", dest="clear"),
    )),
    Command("reconcile", "repair what is derived from the notes; the notes stay as they are",
        "commands.maintenance:run_reconcile", (
        _take("-s --scope", "what to repair, each by itself (default: all)", choices=("all", *SCOPES)),
        _flag("--accept-vanished",
            "drop the notes whose files have vanished, also from a running server; nothing else"),
        _flag("--forget-questions",
            "forget questions that notes were cited for, also in a running server; nothing else"),
        _take("--note ID", "that this note was cited for", under=_WHICH),
        _take("--agent ID", "that this agent was the first to ask", under=_WHICH),
        _take("--since TIME", "asked last at or after this time (ISO 8601)", _time, under=_WHICH),
        _take("--until TIME", "asked last at or before this time (ISO 8601)", _time, under=_WHICH),
        _DRY_RUN,
        _flag("--json-output", "the same as --json", dest="as_json"),
    )),
    Command("extract-entities", "find the names in all notes, by which they are filtered and found",
        "commands.maintenance:run_extract", (
        _DRY_RUN,
        _flag("--force", "also replace entities that a person chose; needs lcma.write_entities"),
    )),
    Command("validate", "look for mistakes in the note files; nothing is changed without --fix",
        "commands.checks:run_validate", (
        _take("--fix",
            "write missing titles and authors; with `ids` also missing ids, and new ones for duplicates",
            nargs="?", const=True, choices=("ids",)),
        _flag("--no-fix", "only look (default)", action="store_false", dest="fix"),
        _flag("--yes", "do not ask before --fix changes files"),
        _flag("--all", "list infos and all entries", dest="everything"),
        _flag("--strict", "exit 1 also when warnings remain"),
    )),
    Command("evaluate", "ask the questions of a file and check that the right notes are found",
        "commands.evaluating:run_evaluate", (
        _take("file FILE", "YAML, or JSON lines, of questions and expected notes"),
        _take("--mode", "how to search, whatever the questions say (default: what each says, else hybrid)",
            choices=TEST_MODES),
        _take("--k N", "cut of hit@k and recall@k, 1 to 50 (default: 5)", _rank),
        _take("--save PATH", "write a baseline: the ranks of this run; replaces an older one"),
        _take("--against PATH", "compare with this baseline; exit 1 when one is worse"),
        _flag("--from-receipts",
            "write FILE, which must not exist, from what agents asked and cited; nothing is asked"),
        ),
        "Ask the questions of a file and check that the right notes are found: a running server over HTTP, "
        "else a copy of the files, which stay as they are. Exit 1 when a test fails or is worse than the "
        "baseline. A server is asked as the agent `evaluate`: mode retrieve leaves receipts and statistics "
        "there, as every retrieval does.",
    ),
    Command("doctor", "check the whole installation and say what to do; exit 1 when something is wrong",
        "commands.checks:run_doctor", needs_session=False,  # it tells what is wrong in a configuration, too
    ),
    Command("backup", "copy everything that cannot be rebuilt, also while a server runs",
        "commands.backup:run_backup", (_take("directory DIR", "where to; empty or absent"),),
    ),
    Command("restore", "put a verified backup in the place of the data directory",
        "commands.backup:run_restore", (
        _take("source DIR-or-TAR", "what `lithos backup` or `export` made"),
        _flag("--force", "also where there is content; it is moved aside, not deleted"),
    )),
    Command("export", "write notes, agents, tasks, claims, findings and edges as JSON lines",
        "commands.backup:run_export", (
        _take("file FILE", "a new file; - for stdout (default for jsonl)", nargs="?"),
        _take("--format", "tar: a backup in one archive (default: jsonl)", choices=("jsonl", "tar")),
    )),
    Command("import", "bring notes of another program in; the source stays as it is",
        "commands.importing:run_import", (
        _take("source SOURCE", "a file or folder; its kind is recognised"),
        _take("--from KIND", "its kind; an unknown one lists them all", dest="kind"),
        _take("--into FOLDER", "folder below the notes (default: the top)"),
        _take("--agent NAME", "who imports, for events and history (default: import)"),
        _flag("--recreate", "also what was imported before and deleted here"),
        _DRY_RUN,
    )),
    Command("top", "show what a running server does, live in the terminal", "top:run_top", (
        _take("--interval S", "seconds between two looks (default: 1)", _pause),
    )),
    Command("demo", "watch two agents share notes and work, on a folder that is thrown away",
        "demo.play:run_demo", (
        _flag("--stay",
            "play a day of eight agents and serve its console until Ctrl+C; with --vault, next to its copy"),
        _take("--port N", "port of the console (default: a free one)", int),
    )),
    Command("token", "create, list and revoke tokens: who may use the server, and what they may do",
        "commands.tokens:run_token", chosen="action", parts=(
            Command("create", "make a token and print it, once", takes=(
                _take("name NAME", "what to call it: letters, digits and . _ - @"),
                _take("--agent ID", "whoever has it acts as this agent and as no other"),
                _take("--rights", "what it may do (default: write)", choices=RIGHTS),
                _take("--expires DAYS", "how long it lives (default: for ever)", _days),
                _take("--write GLOB", "patterns of the notes that it may change at once, such as plans/ or "
                    "'**/*.md' (default: all; none with --propose alone)", nargs="+", action="extend"),
                _take("--propose GLOB", "patterns of the notes where its changes wait for a person",
                    nargs="+", action="extend"),
                _flag("--add", "let the token of this name, which is known already, into the vaults that "
                    "--vault names; no new one is made"),
                ), description="Make a token and print it, once. Of several vaults it is let into those that "
                "--vault names (default: the default vault; '*': all, later ones too), and into no other.",
            ),
            Command("list", "names, rights, agents and ends; never the tokens themselves"),
            Command("revoke", "end a token; a running server ends its streams within 2 seconds", takes=(
                _take("name NAME", "its name"),
            )),
            Command("off", "ask for no named token any more, once all are revoked"),
            Command("client", "clients elsewhere that are known without registering", chosen="client_action",
                parts=(
                    Command("add", "make one known, and print its client id", takes=(
                        _take("name NAME", "what to call it"),
                        _take("--redirect URI", "where it is answered; may be repeated", action="append",
                            required=True),
                    )),
                    Command("list", "all that are known, those that registered too"),
                    Command("remove", "forget one", takes=(_take("client ID", "its client id"),)),
                ),
            ),
        ),
    ),
    Command("login", "print a link that logs you in to the console of a server at a public address, once",
        "commands.tokens:run_login"),
    Command("connect", "connect a client: print what it needs, or write it into its own configuration",
        "connecting.command:run_connect", (
        # A default that is left out would count as a wrong choice.
        _take("client CLIENT", f"one of {', '.join((*CLIENTS, *HOSTED))}", nargs="?",
            choices=(*CLIENTS, *HOSTED), default=None),
        _flag("--write", "put the entry into the client's configuration", alone=True),
        _flag("--remove", "take the entry out again", alone=True),
        _flag("--list", "tell which clients are here, and what is connected", alone=True),
        _take("--scope", "whose configuration: yours, or that of the project in this folder (default: user)",
            choices=("user", "project")),
        _take("--transport",
            "how it connects (default for --write: stdio; http in a project, and for agent-zero)",
            choices=("http", "stdio")),
        _take("--name NAME", "what the entry is called (default: lithos)"),
        _take("--file PATH", "the client's configuration file, where it is elsewhere", Path),
        _take("--agent ID", "the agent id to use there (default: CLIENT@HOST of this machine)", _agent),
        _take("--plugin DIR", "write a plugin there: server, skill and hooks (claude-code)", alone=True),
        ),
        "Print what a client needs to reach this server, ready to paste. With --write it is put into the "
        "client's own configuration file, where every other byte stays; a backup is kept beside it, and "
        "--remove gives the file back as it was.",
    ),
    Command("skill", "print the skill (SKILL.md) that teaches an agent to use Lithos",
        "plugin.writing:run_skill",
        needs_session=False,  # the same for every configuration
    ),
    Command("bundle", "write the published forms: server.json, the .mcpb bundle, the plugin marketplace",
        "plugin.bundle:run_bundle", (
        _take("directory DIR", "where to; empty, absent, or written by this command"),
        _take("--name NAME", "the name in the MCP registry, as io.github.OWNER/NAME"),
        _take("--image REFERENCE", "the container image, with its tag"),
    )),
    Command("completion", "print a script that completes commands and options in a shell",
        "completion:run_completion",
        (_take("shell SHELL", f"one of {', '.join(SHELLS)}", choices=SHELLS),),
        needs_session=False,  # a shell that starts wants no words about a configuration
    ),
)  # fmt: skip
COMMANDS: Final = {command.name: command for command in _COMMANDS}


def parse_arguments(argv: Sequence[str]) -> Invocation:
    """Parse, or exit with 2 and a usage message."""
    given = vars(make_parser(frozenset(argv)).parse_args(argv))
    vaults = tuple(text for depth in range(_DEEPEST) for text in given.pop(_vault_at(depth), ()))
    if len(vaults) == 1 and not _NAMED_VAULT.match(vaults[0]):
        given["vault"] = Path(vaults[0])
    return Invocation(
        command=given.pop("command"),
        config=given.pop("config", None),
        data_dir=given.pop("data_dir", None),
        as_json=given.pop("as_json", False),
        typed=given,
        vaults=vaults,
    )


#: How a vault with a name begins, as `config.vault_entries` reads it, which a hook has no time to import.
_NAMED_VAULT: Final = re.compile("[a-z0-9-]{1,32}=")
#: Levels of commands: the program, a command, and parts of one in parts of one.
_DEEPEST: Final = 4


def _vault_at(depth: int) -> str:
    """Where a level keeps what `--vault` was given there, since a parser forgets the lists of those above."""
    return f"vault_{depth}"


def _shared_at(depth: int) -> argparse.ArgumentParser:
    """The global options, as a level of commands takes them."""
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    own = {"--vault": {"dest": _vault_at(depth)}}
    _declare(shared, [(names, {**given, **own.get(names[-1], {})}) for names, given in _GLOBAL])
    return shared


@functools.cache
def make_parser(named: frozenset[str] | None = None) -> argparse.ArgumentParser:
    """All commands and options, made once: for shell completion and for the reference.

    For parsing only the `named` commands have their options: those of all take 15 ms.
    """
    parser = argparse.ArgumentParser(
        prog="lithos",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[_shared_at(0)],
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("--version", action="version", version=f"lithos {__version__}")
    _add_commands(parser, "command", _COMMANDS, named, depth=1)
    return parser


def _add_commands(
    parser: argparse.ArgumentParser,
    chosen: str,
    commands: Sequence[Command],
    named: frozenset[str] | None,
    *,
    depth: int,
) -> None:
    added = parser.add_subparsers(dest=chosen, required=True, metavar=chosen.upper())
    for command in commands:
        if named is not None and command.name not in named:
            added.add_parser(command.name, help=command.help, add_help=False)
            continue
        sentence = f"{command.help[0].upper()}{command.help[1:]}." if command.runs else None
        inner = added.add_parser(
            command.name,
            help=command.help,
            description=command.description or sentence,
            parents=[_shared_at(depth)],
            argument_default=argparse.SUPPRESS,
        )
        _declare(inner, command.takes)
        if command.parts:
            _add_commands(inner, command.chosen, command.parts, named, depth=depth + 1)


def _declare(parser: argparse.ArgumentParser, takes: Iterable[Taken]) -> None:
    """Tell the parser what a command takes."""
    groups: dict[str | bool, Any] = {"": parser}
    for names, given in takes:
        rest = dict(given)
        alone, under = rest.pop("alone", False), rest.pop("under", "")
        if (alone or under) not in groups:
            made = parser.add_mutually_exclusive_group() if alone else parser.add_argument_group(under)
            groups[alone or under] = made
        groups[alone or under].add_argument(*names, **rest)
