"""The commands for checks, repairs, statistics, copies, and reads of notes."""

from __future__ import annotations

import argparse
from typing import Final

from lithos.server.command.declaring import DRY_RUN, CliCommand, count, flag, moment, take

#: `upkeep.checks.reconcile_indices.SCOPES`: importing it takes long. `tests/app/test_options.py` compares.
SCOPES = ("indices", "graph", "provenance_projection")
#: Of the questions that `reconcile --forget-questions` forgets.
_WHICH: Final = "which questions --forget-questions forgets, all conditions together"

COMMANDS: Final = (
    CliCommand("stats", "print numbers about the notes and their indexes",
        "lithos.search.commands_queries:run_stats", group="upkeep", place=50),
    CliCommand("inspect", "show the state of the server, its agents, tasks or one note",
        "lithos.search.commands_queries:run_inspect",
        chosen="subject", parts=(
            CliCommand("health", "components and their state; exit 1 when degraded"),
            CliCommand("agents", "agents that were here"),
            CliCommand("tasks", "open tasks with claims, findings and blockers, newest first", takes=(
                flag("--all", "closed ones too", dest="closed"),
            )),
            CliCommand("doc", "show one note; exit 1 if it does not exist", takes=(
                take("document ID-PATH-or-TITLE", "note id, path below knowledge/, or title"),
                flag("--content", "print the text as well"),
            )),
        ),
        group="read and search", place=60,
    ),
    CliCommand("audit", "show which agent read which note", "lithos.search.commands_queries:run_audit", (
        take("-a --agent ID", "only reads of this agent"),
        take("-s --since TIME", "only entries after this time (ISO 8601)"),
        take("-n --limit N", "most rows (default: 50)", count),
        take("--doc ID", "only reads of this note"),
    ), group="history", place=70),
    CliCommand("care", "report which notes need attention, and why; changes nothing",
        "lithos.search.commands_queries:run_care", (
        flag("--open-tasks", "open a task for each group, unless it has one"),
        flag("--all", "list up to 200 rows of each group", dest="everything"),
        take("--by NAME", "agent recorded as creator of the tasks (default: your user name)"),
    ), group="upkeep", place=80),
    CliCommand("worth", "count searches, reads, citations and handovers of agents, by day",
        "lithos.search.commands_queries:run_worth", (
        take("--days N", "how many days, today with them (default: 7)", count),
    ), group="upkeep", place=90),
    CliCommand("reindex", "bring the search indexes in line with the notes",
        "lithos.upkeep.maintenance.maintenance_commands:run_reindex", (
        flag("--clear", "start with empty indexes (default: no)", action=argparse.BooleanOptionalAction),
        flag("--force", "the same as --clear", dest="clear"),
    ), group="upkeep", place=180, reads_databases=True),
    CliCommand("reconcile", "repair data derived from the notes; the notes are not changed",
        "lithos.upkeep.maintenance.maintenance_commands:run_reconcile", (
        take("-s --scope", "one part to repair (default: all)", choices=("all", *SCOPES)),
        flag("--accept-vanished",
            "drop the notes whose files have vanished, also from a running server; nothing else"),
        flag("--forget-questions",
            "forget questions that notes were cited for, also in a running server; nothing else"),
        take("--note ID", "that this note was cited for", under=_WHICH),
        take("--agent ID", "that this agent was the first to ask", under=_WHICH),
        take("--since TIME", "asked last at or after this time (ISO 8601)", moment, under=_WHICH),
        take("--until TIME", "asked last at or before this time (ISO 8601)", moment, under=_WHICH),
        DRY_RUN,
        flag("--json-output", "the same as --json", dest="as_json"),
    ), group="upkeep", place=190, reads_databases=True),
    CliCommand("extract-entities", "find the names in all notes, by which they are filtered and found",
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
        flag("--all", "list infos and all entries", dest="everything"),
        flag("--strict", "exit 1 also when warnings remain"),
    ), group="upkeep", place=210, reads_databases=True),
    CliCommand("doctor", "check the whole installation and give advice; exit 1 if a check fails",
        "lithos.upkeep.maintenance.check_commands:run_doctor",
        needs_session=False,  # it reports errors in a configuration, too
        group="upkeep", place=230, reads_databases=True, takes_several=True,
    ),
    CliCommand("backup", "copy everything that cannot be rebuilt, also while a server runs",
        "lithos.upkeep.maintenance.backup_commands:run_backup",
        (take("directory DIR", "where to; empty or absent"),),
        group="admin", place=240, reads_databases=True, takes_several=True, folder="spared",
    ),
    CliCommand("restore", "put a verified backup in the place of the data directory",
        "lithos.upkeep.maintenance.backup_commands:run_restore", (
        take("source DIR-or-TAR", "folder or file made by `lithos backup` or `lithos export`"),
        flag("--force", "also where there is content; it is moved aside, not deleted"),
    ), group="admin", place=250, reads_databases=True, folder="made"),
    CliCommand("export", "write notes, agents, tasks, claims, findings and edges as JSON lines",
        "lithos.upkeep.maintenance.backup_commands:run_export", (
        take("file FILE", "a new file; - for stdout (default for jsonl)", nargs="?"),
        take("--format", "tar: a backup in one archive (default: jsonl)", choices=("jsonl", "tar")),
    ), group="admin", place=260, reads_databases=True),
)  # fmt: skip
