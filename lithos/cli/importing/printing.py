"""The report of an import in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lithos.cli.output import print_line
from lithos.services.importing.records import (
    CHANGED_HERE,
    CREATED,
    DELETED_HERE,
    DUPLICATE,
    EDGE_MADE,
    EDGE_MISSING,
    EDGE_THERE,
    FAILED,
    MALFORMED,
    RESULTS,
    UNCHANGED,
    UPDATED,
)
from lithos.services.importing.run import (
    ATTACHMENT,
    CONFLICT,
    COPIED,
    EDGE,
    EQUAL,
    NOTICE,
    ROW,
    TABLE_RESULTS,
    Report,
)

#: Rows printed of each kind.
SHOWN: Final = 20
_HEADINGS: Final[Mapping[str, str]] = {
    CREATED: "Created",
    UPDATED: "Updated",
    UNCHANGED: "Unchanged since the last import",
    CHANGED_HERE: "Changed at the source and here: left alone",
    DELETED_HERE: "Deleted here: not created again (--recreate does)",
    DUPLICATE: "Ids that the source has twice: skipped",
    MALFORMED: "Could not be read: skipped",
    FAILED: "Could not be written",
    NOTICE: "Not kept quite as it was",
    ATTACHMENT: "Attachments that were not copied",
    ROW: "Rows that were left out",
    EDGE: "Relations to what was not imported",
}


def print_report(report: Report) -> None:
    """What was done, or would be, in words."""
    options = report.options
    would = "would be " if options.dry_run else ""
    print_line(
        f"{'Plan' if options.dry_run else 'Import'} of {report.source} ({options.kind})"
        + (f" into {options.into}" if options.into else "")
    )
    for result in RESULTS:
        number = report.results[result]
        if number or result in (CREATED, UPDATED, UNCHANGED):
            print_line(f"  {number:>7,} {would if result in (CREATED, UPDATED) else ''}{result}")
    carried = report.carried
    told = ", ".join(f"{carried[name]:,} {name}" for name in ("links", "tags", "dates"))
    told = ", ".join(f"{carried[name]:,} {name}" for name in ("links", "tags", "dates"))
    print_line(f"Carried over: {told}")
    files = report.attachments
    if files:
        print_line(
            f"Attachments: {files[COPIED]:,} {would}copied, {files[EQUAL]:,} there already, "
            f"{files[CONFLICT]:,} in conflict, {files[FAILED]:,} failed"
        )
    if report.edges:
        print_line(
            f"Relations: {report.edges[EDGE_MADE]:,} {would}made, {report.edges[EDGE_THERE]:,} there, "
            f"{report.edges[EDGE_MISSING]:,} lead to what was not imported"
        )
    _print_tables(report)
    for what, rows in report.listed.items():
        print_line("")
        print_line(f"{_HEADINGS[what]}:")
        for row in rows[:SHOWN]:
            place = f" -> {row.path}" if row.path and row.path != row.position else ""
            print_line(f"  {row.position}{place}" + (f": {row.reason}" if row.reason else ""))
        more = report.counted[what] - min(len(rows), SHOWN)
        if more:
            print_line(f"  and {more:,} more")
    if options.dry_run:
        print_line("")
        print_line("Dry run: nothing was changed.")


def _print_tables(report: Report) -> None:
    """What became of the rows of databases, a line a table."""
    if report.tables:
        print_line("Rows of its databases:")
    for name, counts in report.tables.items():
        told = ", ".join(f"{counts[result]:,} {result}" for result in TABLE_RESULTS if counts[result])
        print_line(f"  {name}: {told or 'none'}")
