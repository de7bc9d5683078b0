"""The commands for versions, undo and conflict copies."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from lithos.server.command.declaring import DRY_RUN, CliCommand, count, flag, moment, take

COMMANDS: Final = (
    CliCommand("history", "list the versions of a note, compare two of them, or list the deleted notes",
        "lithos.history.commands_history:run_history", (
        take("note ID-or-PATH", "note id, or path below knowledge/", nargs="?"),
        take("--diff A..B",
            "difference between versions A and B (or rows rA and rB); A alone is compared with "
            "the previous version"),
        flag("--deleted", "list the deleted notes that can be restored"),
        take("-n --limit N", "maximum number of rows (default: 20)", count),
    ), group="history", place=100),
    CliCommand("restore-note", "restore an earlier version of a note, or a deleted note",
        "lithos.history.commands_history:run_restore_note", (
        take("note ID", "note id, or path below knowledge/"),
        # Without a number, `--version` prints the version of the program.
        take("--version N", "number of the version", count, dest="note_version"),
        take("--row N", "number of the history row (listed as rN) instead", count, dest="note_row"),
    ), group="history", place=110),
    CliCommand("undo", "undo the changes of one or more agents and keep the changes of others",
        "lithos.history.commands_history:run_undo", (
        take("--agent NAME", "agent whose changes to undo; repeat for several agents", required=True,
              action="append"),
        take("--since TIME", "only changes at or after this time (ISO 8601; default: all kept)", moment),
        take("--until TIME", "only changes before this time (default: now)", moment),
        DRY_RUN,
    ), group="history", place=120),
    CliCommand("conflicts", "list, show, merge or keep conflict copies that another machine wrote",
        "lithos.history.commands_merge_driver:run_conflicts", (
        take("action", "list (default), show, merge or keep", nargs="?"),
        take("paths PATH", "paths of conflict copies", nargs="*"),
        flag("--all",
            "merge all copies that need no decision, except copies with names that people also choose"),
        take("--keep SIDE",
            "side to keep if both sides changed the same place", choices=("note", "copy", "both")),
        take("--by NAME", "name of the person who merges (default: your user name)"),
        ),
        "merge writes the next version of the note and removes the copy; the history keeps the copy's bytes. "
        "A copy with overlapping changes is not merged unless --keep names a side. keep makes the file a "
        "separate note permanently. The exit code is 1 if a copy is left.",
        group="history", place=140,
    ),
    CliCommand("merge-driver", "merge two versions of a note for git; needs no server and no data directory",
        "lithos.history.commands_merge_driver:run_merge_driver", (
        take("base BASE", "file with the common ancestor of both versions", Path),
        take("ours OURS", "file with our version; the merged text replaces it", Path),
        take("theirs THEIRS", "file with their version", Path),
        take("--path NAME", "name of the note, used in messages"),
        take("--marker-size N", "length of a conflict marker in characters (default: 7)", count),
        take("--ours-name NAME", "label of our side in conflict markers (default: ours)"),
        take("--theirs-name NAME", "label of their side in conflict markers (default: theirs)"),
        ),
        "Merge two versions of a note: the text line by line, the frontmatter key by key. Overlapping "
        "changes are written to OURS between git's conflict markers, and the exit code is 1. "
        "See docs/two-machines.md.",
        needs_session=False,
        group="history", place=150,
    ),
)  # fmt: skip
