"""The report of an import: counts of what became of everything, bounded lists of what a person must know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from attrs import define, field, frozen

from lithos.core.importing import Carried, Record
from lithos.services.importing.records import (
    CHANGED_HERE,
    CREATED,
    DELETED_HERE,
    DUPLICATE,
    EDGE_MISSING,
    EDGE_RESULTS,
    FAILED,
    MALFORMED,
    RESULTS,
    UNCHANGED,
    UPDATED,
    Options,
    Outcome,
)

#: Rows that are listed of each kind; the rest is counted.
MOST_LISTED: Final = 100
#: Characters of a position, path or reason in a row.
LONGEST: Final = 500

COPIED: Final = "copied"
EQUAL: Final = "unchanged"
CONFLICT: Final = "conflict"
ATTACHMENT_RESULTS: Final = (COPIED, EQUAL, CONFLICT, FAILED)
#: What is listed besides the results of records.
NOTICE: Final = "notice"
ATTACHMENT: Final = "attachment"
EDGE: Final = "edge"
ROW: Final = "row"
#: Of rows of tables, besides created, updated and unchanged: not carried, as the list says why.
KEPT: Final = "left"
TABLE_RESULTS: Final = (CREATED, UPDATED, UNCHANGED, KEPT)
_LISTED: Final = (
    CREATED, UPDATED, CHANGED_HERE, DELETED_HERE, DUPLICATE, MALFORMED, FAILED, NOTICE, ATTACHMENT, EDGE, ROW,
)  # fmt: skip


@frozen
class Row:
    """One line of a list: where it stands in the source, its note here, and why."""

    what: str
    position: str
    path: str | None = None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "what": self.what.replace(" ", "_"),
            "position": self.position,
            "path": self.path,
            "reason": self.reason or None,
        }


@define(eq=False)
class Report:
    """What an import did, or in a dry run would do."""

    source: str
    options: Options
    results: Counter[str] = field(factory=Counter)
    attachments: Counter[str] = field(factory=Counter)
    edges: Counter[str] = field(factory=Counter)
    #: Links, tags and dates of the notes that were created, updated or are there unchanged.
    carried: Counter[str] = field(factory=Counter)
    #: Rows of tables, by what became of them.
    tables: dict[str, Counter[str]] = field(factory=dict)
    listed: dict[str, list[Row]] = field(factory=dict)
    counted: Counter[str] = field(factory=Counter)

    def add(self, outcome: Outcome, record: Record | None = None) -> None:
        """Count the outcome of a record, and list it."""
        self.results[outcome.result] += 1
        if outcome.result != UNCHANGED:
            self._list(Row(outcome.result, outcome.position, outcome.path, outcome.reason))
        for notice in outcome.notices:
            self._list(Row(NOTICE, outcome.position, outcome.path, notice))
        if record is not None and outcome.result in (CREATED, UPDATED, UNCHANGED):
            self.carried["links"] += record.links
            self.carried["tags"] += len(record.tags)
            self.carried["dates"] += (record.created_at is not None) + (record.updated_at is not None)

    def add_malformed(self, position: str, reason: str) -> None:
        """Count something that could not be read."""
        self.add(Outcome(position, MALFORMED, reason=reason))

    def add_notice(self, position: str, reason: str) -> None:
        """List something that could not be kept as it was."""
        self._list(Row(NOTICE, position, None, reason))

    def add_attachment(self, path: str, result: str, reason: str) -> None:
        """Count an attachment; one that could not be copied is listed."""
        self.attachments[result] += 1
        if reason:
            self._list(Row(ATTACHMENT, path, None, reason))

    def add_edge(self, position: str, result: str, described: str) -> None:
        """Count a typed edge; one that leads nowhere is listed."""
        self.edges[result] += 1
        if result == EDGE_MISSING:
            self._list(Row(EDGE, position, None, described))

    def add_rows(self, table: str, carried: Carried) -> None:
        """Count what became of the rows of a table; those that were not carried are listed."""
        counts = self.tables.setdefault(table, Counter())
        counts[CREATED] += carried.created
        counts[UPDATED] += carried.updated
        counts[UNCHANGED] += carried.same
        counts[KEPT] += len(carried.kept)
        for row in carried.kept:
            self._list(Row(ROW, f"{table} {row.key}", None, row.reason))

    def _list(self, row: Row) -> None:
        self.counted[row.what] += 1
        rows = self.listed.setdefault(row.what, [])
        if len(rows) < MOST_LISTED:
            rows.append(
                Row(
                    row.what,
                    row.position[:LONGEST],
                    row.path if row.path is None else row.path[:LONGEST],
                    row.reason[:LONGEST],
                )
            )

    def rows(self) -> Iterator[Row]:
        """The listed rows by what they are."""
        for what in _LISTED:
            yield from self.listed.get(what, ())

    def unlisted(self) -> dict[str, int]:
        """How many more there are of each kind than are listed."""
        return {
            what: number - len(self.listed[what])
            for what, number in self.counted.items()
            if number > len(self.listed[what])
        }

    @property
    def notices(self) -> int:
        """How many notices there are."""
        return self.counted[NOTICE]

    @property
    def has_failures(self) -> bool:
        """Whether something that could be read could not be written."""
        return bool(self.results[FAILED] or self.attachments[FAILED])

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        options = self.options
        return {
            "source": self.source,
            "kind": options.kind,
            "into": options.into,
            "agent": options.agent,
            "dry_run": options.dry_run,
            "notes": {result.replace(" ", "_"): self.results[result] for result in RESULTS},
            "notices": self.notices,
            "carried": {name: self.carried[name] for name in ("links", "tags", "dates")},
            "attachments": {result: self.attachments[result] for result in ATTACHMENT_RESULTS},
            "edges": {result.replace(" ", "_"): self.edges[result] for result in EDGE_RESULTS},
            "tables": {
                name: {result: counts[result] for result in TABLE_RESULTS}
                for name, counts in self.tables.items()
            },
            "rows": [row.to_json() for row in self.rows()],
            "unlisted": {what.replace(" ", "_"): number for what, number in self.unlisted().items()},
        }
