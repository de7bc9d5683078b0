"""The commands of versions, undo and conflict copies."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from lithos.server.command.declaring import DRY_RUN, CliCommand, count, flag, moment, take

COMMANDS: Final = (
    CliCommand("history", "list the versions of a note, what changed, or the deleted notes",
        "lithos.history.commands_history:run_history", (
        take("note ID-or-PATH", "note id, or path below knowledge/", nargs="?"),
        take("--diff A..B", "what changed from version A (or row rA) to B; A alone: from the one before"),
        flag("--deleted", "list the notes that can be brought back"),
        take("-n --limit N", "most rows (default: 20)", count),
    ), group="history", place=100),
    CliCommand("restore-note", "bring an earlier version of a note back, also of a deleted one",
        "lithos.history.commands_history:run_restore_note", (
        take("note ID", "note id, or path below knowledge/"),
        # `--version` alone is the program's.
        take("--version N", "which version", count, dest="note_version"),
        take("--row N", "or the row of the history with this number, listed as rN", count, dest="note_row"),
    ), group="history", place=110),
    CliCommand("undo", "take the changes of one agent or several back; what others changed stays",
        "lithos.history.commands_history:run_undo", (
        take("--agent NAME", "whose changes; more than once for several agents", required=True,
              action="append"),
        take("--since TIME", "made at or after this time (ISO 8601; default: all that are kept)", moment),
        take("--until TIME", "made before this time (default: now)", moment),
        DRY_RUN,
    ), group="history", place=120),
    CliCommand("conflicts", "list, show, merge and keep what another machine wrote of notes",
        "lithos.history.commands_merge_driver:run_conflicts", (
        take("action", "list (default), show, merge or keep", nargs="?"),
        take("paths PATH", "which conflict copies", nargs="*"),
        flag("--all", "merge all that nobody has to decide, but those whose names people give, too"),
        take("--keep SIDE", "what to keep where both changed the same", choices=("note", "copy", "both")),
        take("--by NAME", "who merges (default: your user name)"),
        ),
        "Merging gives the note its next version and removes the copy, whose bytes stay in the history. What "
        "both changed in one place is left alone, unless --keep says what to keep. With keep a file is "
        "a note of its own, for good. Exit 1 when one is left.",
        group="history", place=140,
    ),
    CliCommand("merge-driver", "merge two versions of a note for git; needs no server and no data directory",
        "lithos.history.commands_merge_driver:run_merge_driver", (
        take("base BASE", "the file that both began with", Path),
        take("ours OURS", "our version, which becomes the merged one", Path),
        take("theirs THEIRS", "their version", Path),
        take("--path NAME", "the note's name, for messages"),
        take("--marker-size N", "characters of a marker (default: 7)", count),
        take("--ours-name NAME", "what our side of a conflict is called (default: ours)"),
        take("--theirs-name NAME", "what theirs is called (default: theirs)"),
        ),
        "Merge two versions of a note as Lithos merges: the text by lines, the frontmatter by key. What both "
        "changed stands in OURS between git's markers, and the exit code is 1. See docs/two-machines.md.",
        needs_session=False,
        group="history", place=150,
    ),
)  # fmt: skip
