"""Commands for checks, repairs, statistics, backups and reading notes."""

from __future__ import annotations

import argparse
from typing import Final

from lithos.server.command.declaring import DRY_RUN, CliCommand, count, flag, moment, take

#: Equals `upkeep.checks.reconcile_indices.SCOPES`, which takes long to import. `tests/app/test_options.py`
#: compares the two.
SCOPES = ("indices", "graph", "provenance_projection")
#: Title of the help group of options that select questions for `reconcile --forget-questions`.
_WHICH: Final = "questions that --forget-questions deletes; all conditions must hold"

COMMANDS: Final = (
    CliCommand("stats", "print numbers about the notes and their indexes",
        "lithos.search.commands_queries:run_stats", group="upkeep", place=50),
    CliCommand("inspect", "show the state of the server, its agents, tasks or one note",
        "lithos.search.commands_queries:run_inspect",
        chosen="subject", parts=(
            CliCommand("health", "show components and their state; exit 1 if the server is degraded"),
            CliCommand("agents", "list the agents that this server knows", takes=(
                flag("--all", "include archived agents", dest="archived"),
            )),
            CliCommand("tasks", "list open tasks with claims, findings and blockers, newest first", takes=(
                flag("--all", "include closed tasks", dest="closed"),
            )),
            CliCommand("doc", "show one note; exit 1 if it does not exist", takes=(
                take("document ID-PATH-or-TITLE", "note id, path below knowledge/, or title"),
                flag("--content", "also print the text of the note"),
            )),
        ),
        group="read and search", place=60,
    ),
    CliCommand("projects", "list the projects of the notes and tasks, with their numbers",
        "lithos.upkeep.commands_projects:run_projects", group="read and search", place=65),
    CliCommand("audit", "show which agent read which note", "lithos.search.commands_queries:run_audit", (
        take("-a --agent ID", "only reads of this agent"),
        take("-s --since TIME", "only entries after this time (ISO 8601)"),
        take("-n --limit N", "maximum number of rows (default: 50)", count),
        take("--doc ID", "only reads of this note"),
    ), group="history", place=70),
    CliCommand("care", "report which notes need attention, and why; change nothing",
        "lithos.search.commands_queries:run_care", (
        flag("--open-tasks", "create a task for each group that does not have a task yet"),
        flag("--all", "list up to 200 rows of each group", dest="everything"),
        take("--by NAME", "agent recorded as creator of the tasks (default: your user name)"),
    ), group="upkeep", place=80),
    CliCommand("worth", "count searches, reads, citations and handovers of agents, by day",
        "lithos.search.commands_queries:run_worth", (
        take("--days N", "number of days, including today (default: 7)", count),
    ), group="upkeep", place=90),
    CliCommand("reindex", "update the search indexes from the notes",
        "lithos.upkeep.maintenance.maintenance_commands:run_reindex", (
        flag("--clear", "start with empty indexes (default: no)", action=argparse.BooleanOptionalAction),
        flag("--force", "the same as --clear", dest="clear"),
    ), group="upkeep", place=180, reads_databases=True),
    CliCommand("reconcile", "repair data derived from the notes; the notes are not changed",
        "lithos.upkeep.maintenance.maintenance_commands:run_reconcile", (
        take("-s --scope", "one part to repair (default: all)", choices=("all", *SCOPES)),
        flag("--accept-vanished",
            "only forget the notes whose files have vanished; works with a running server"),
        flag("--forget-questions",
            "forget questions for which notes were cited, also in a running server, and do nothing else"),
        take("--note ID", "only questions for which this note was cited", under=_WHICH),
        take("--agent ID", "only questions that this agent asked first", under=_WHICH),
        take("--since TIME",
            "only questions last asked at or after this time (ISO 8601)", moment, under=_WHICH),
        take("--until TIME",
            "only questions last asked at or before this time (ISO 8601)", moment, under=_WHICH),
        DRY_RUN,
        flag("--json-output", "the same as --json", dest="as_json"),
    ), group="upkeep", place=190, reads_databases=True),
    CliCommand("extract-entities", "extract entities (names) from all notes; searches and filters use them",
        "lithos.upkeep.maintenance.maintenance_commands:run_extract", (
        DRY_RUN,
        flag("--force", "also replace entities that a person chose; needs lcma.write_entities"),
    ), group="upkeep", place=200, reads_databases=True),
    CliCommand("validate", "check the note files for errors; nothing is changed without --fix",
        "lithos.upkeep.maintenance.check_commands:run_validate", (
        take("--fix",
            "write missing titles and authors; with `ids` also missing ids, and new ones for duplicates",
            nargs="?", const=True, choices=("ids",)),
        flag("--no-fix", "only check (default)", action="store_false", dest="fix"),
        flag("--yes", "do not ask before --fix changes files"),
        flag("--all", "also list infos, and do not shorten the lists", dest="everything"),
        flag("--strict", "also exit 1 if warnings remain"),
    ), group="upkeep", place=210, reads_databases=True),
    CliCommand("doctor", "check the whole installation and give advice; exit 1 if a check fails",
        "lithos.upkeep.maintenance.check_commands:run_doctor",
        needs_session=False,  # without a session, doctor can also report configuration errors
        group="upkeep", place=230, reads_databases=True, takes_several=True,
    ),
    CliCommand("backup", "copy everything that cannot be rebuilt, also while a server runs",
        "lithos.upkeep.maintenance.backup_commands:run_backup",
        (take("directory DIR", "target directory; it must be empty or not exist yet"),),
        group="admin", place=240, reads_databases=True, takes_several=True, folder="spared",
    ),
    CliCommand("restore", "replace the data directory with a backup, after verifying it",
        "lithos.upkeep.maintenance.backup_commands:run_restore", (
        take("source DIR-or-TAR", "folder or file made by `lithos backup` or `lithos export`"),
        flag("--force",
            "restore even if the data directory has content, which is moved aside and not deleted"),
    ), group="admin", place=250, reads_databases=True, folder="made"),
    CliCommand("export", "write notes, agents, tasks, claims, findings and edges as JSON lines",
        "lithos.upkeep.maintenance.backup_commands:run_export", (
        take("file FILE", "file to create; - for stdout (default for jsonl)", nargs="?"),
        take("--format",
            "output format; tar is a backup in one archive (default: jsonl)", choices=("jsonl", "tar")),
    ), group="admin", place=260, reads_databases=True),
)  # fmt: skip
