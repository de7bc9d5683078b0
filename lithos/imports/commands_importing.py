"""`lithos import SOURCE`: plan the import, write the notes, and print a report."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs
import trio
from attrs import field, frozen

from lithos.events.model.imported_rows import Carried, KeptRow
from lithos.imports.files.kinds import UnknownKind, known_kinds, make_source, recognise
from lithos.imports.model.importing import ImportRefused, Record, RowBatch, Source
from lithos.imports.service import import_run, records
from lithos.imports.service.dead_links import DeadLink
from lithos.imports.service.import_run import ImportProgress, ImportReport, ImportRun, ImportWriter
from lithos.imports.service.importing import Importing
from lithos.imports.service.records import ImportResult, ImportSession, Options, SourceEdge
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.errors import LithosError, first_of
from lithos.kernel.values.principals import COMMAND, IMPORT_AGENT, acting_as
from lithos.search.settings import SearchConfig
from lithos.server.command.asking import find_owner, local_servers, owner_now
from lithos.server.command.output import tell
from lithos.server.command.progress import counted
from lithos.server.command.session import CommandFailed, CommandSession
from lithos.server.mcp.client import OwnerClient
from lithos.server.settings import ServerConfig

#: Maximum number of rows to print for each kind of result.
SHOWN: Final = 20
_HEADINGS: Final[Mapping[str, str]] = {
    records.CREATED: "Created",
    records.UPDATED: "Updated",
    records.UNCHANGED: "Unchanged since the last import",
    records.CHANGED_HERE: "Changed at the source and here: note unchanged",
    records.DELETED_HERE: "Deleted here: not created again (use --recreate to create)",
    records.DUPLICATE: "Duplicate ids in the source: skipped",
    records.MALFORMED: "Unreadable: skipped",
    records.FAILED: "Not written because of an error",
    import_run.NOTICE: "Imported with changes",
    import_run.ATTACHMENT: "Attachments that were not copied",
    import_run.ROW: "Rows that were not imported",
    import_run.EDGE: "Relations to records that were not imported",
    import_run.DEAD_LINK: "Links without a target",
}


def _describe_report(report: ImportReport) -> Iterator[str]:
    """Yield the lines that describe the results of an import or of a dry run."""
    options = report.options
    would = "would be " if options.dry_run else ""
    yield (
        f"{'Plan' if options.dry_run else 'Import'} of {report.source} ({options.kind})"
        + (f" into {options.into}" if options.into else "")
    )
    for result in report.note_results:
        number = report.results[result]
        if number or result in (records.CREATED, records.UPDATED, records.UNCHANGED):
            yield f"  {number:>7,} {would if result in (records.CREATED, records.UPDATED) else ''}{result}"
    carried = report.carried
    told = ", ".join(f"{carried[name]:,} {name}" for name in ("links", "tags", "dates"))
    yield f"Carried over: {told}"
    files = report.attachments
    if files:
        yield (
            f"Attachments: {files[import_run.COPIED]:,} {would}copied, "
            f"{files[import_run.EQUAL]:,} already there, {files[import_run.CONFLICT]:,} in "
            f"conflict, {files[records.FAILED]:,} failed"
        )
    if report.edges:
        made, there, missing = records.EDGE_MADE, records.EDGE_THERE, records.EDGE_MISSING
        yield (
            f"Relations: {report.edges[made]:,} {would}created, {report.edges[there]:,} already "
            f"there, {report.edges[missing]:,} lead to records that were not imported"
        )
    if report.counted[import_run.DEAD_LINK]:
        yield f"Links without a target: {report.counted[import_run.DEAD_LINK]:,}"
    yield from _describe_rows(report)
    if options.dry_run:
        yield ""
        yield "Dry run: nothing was changed."


def _describe_rows(report: ImportReport) -> Iterator[str]:
    """Yield the results for database rows, with one line per table.

    After the tables, some records of each kind are listed for checking.
    """
    if report.tables:
        yield "Database rows:"
    for name, counts in report.tables.items():
        told = ", ".join(
            f"{counts[result]:,} {result}" for result in import_run.TABLE_RESULTS if counts[result]
        )
        yield f"  {name}: {told or 'none'}"
    for what, rows in report.listed.items():
        yield ""
        yield f"{_HEADINGS[what]}:"
        for row in rows[:SHOWN]:
            place = f" -> {row.path}" if row.path and row.path != row.position else ""
            yield f"  {row.position}{place}" + (f": {row.reason}" if row.reason else "")
        more = report.counted[what] - min(len(rows), SHOWN)
        if more:
            yield f"  and {more:,} more"


#: Maximum seconds to wait for all imported notes to become searchable.
READY_WAIT: Final = 600.0
#: Timeout for a batch in seconds. It is longer than the deadline of a single write.
STEP_TIMEOUT: Final = 300.0


@frozen
class RemoteWriter:
    """Import writer that sends the records to a running server."""

    client: OwnerClient
    #: Only one batch is sent at a time, because the order of batches determines duplicates and paths.
    _turn: trio.Lock = field(factory=trio.Lock)

    async def begin(self, options: Options) -> ImportSession:
        told = attrs.asdict(options, filter=attrs.filters.exclude("is_bound"))  # the server has this value
        answer = await self._ask("begin", **told)
        return ImportSession(answer["session"], Path(answer["notes_folder"]), int(answer["content_limit"]))

    async def take(self, session_id: str, some: Sequence[Record]) -> list[ImportResult]:
        sent = [records.record_to_json(record) for record in some]
        answer = await self._ask("notes", session=session_id, records=sent)
        return [ImportResult(**{**each, "notices": tuple(each["notices"])}) for each in answer["outcomes"]]

    async def connect(self, session_id: str, edges: Sequence[SourceEdge]) -> list[str]:
        sent = [[edge.source, edge.relation, edge.target] for edge in edges]
        answer = await self._ask("edges", session=session_id, edges=sent)
        return [str(result) for result in answer["results"]]

    async def dead_links(self, session_id: str, start: int) -> list[DeadLink]:
        answer = await self._ask("links", session=session_id, start=start)
        return [DeadLink(**each) for each in answer["links"]]

    async def carry(self, session_id: str, batch: RowBatch) -> Carried:
        answer = await self._ask("rows", session=session_id, **records.batch_to_json(batch))
        kept = tuple(KeptRow(*row) for row in answer["kept"])
        return Carried(answer["created"], answer["updated"], answer["same"], kept)

    async def end(self, session_id: str) -> None:
        await self._ask("end", session=session_id)

    async def _ask(self, step: str, **given: Any) -> Mapping[str, Any]:
        async with self._turn:
            answer = await self.client.import_step({"step": step, **given})
        if answer.get("error") == "not_found":
            raise CommandFailed(
                "The running server is an earlier version and cannot import. Restart the server, "
                "or stop it and run the import without it."
            )
        if "error" in answer:
            raise CommandFailed(str(answer.get("message", answer["error"])))
        return answer


USAGE = 2
#: Thread switch interval in seconds. It need not be shorter, because only the import waits for the event
#: loop, and each switch costs time.
SWITCH_INTERVAL = 0.005


def run_import(session: CommandSession) -> int:
    """Import a source. Return 1 if a record or attachment could not be written. Raises `CommandFailed`."""
    typed = session.typed
    path = Path(typed["source"])
    _refuse_own(path, session.config)
    source = _find_source(path, typed.get("kind"), session.config.of(StorageConfig).max_content_size_bytes)
    options = Options(
        kind=source.kind,
        agent=str(typed.get("agent", IMPORT_AGENT)).strip(),
        into=str(typed.get("into", "")),
        dry_run=typed.get("dry_run", False),
        recreate=typed.get("recreate", False),
    )
    with counted(session, source.kind, " items") as count:
        report = trio.run(partial(_import, session, source, path, options, lambda done: count(done, 0)))
    tell(session, report.to_json(), _describe_report(report))
    return 1 if report.has_failures else 0


def _find_source(path: Path, kind: str | None, most: int) -> Source:
    if kind is not None and kind not in known_kinds():
        raise CommandFailed(f"Unknown source kind {kind!r}. Use one of: {', '.join(known_kinds())}.", USAGE)
    try:
        path.stat()
        if not os.access(path, os.R_OK):
            raise PermissionError(13, "you have no permission to read it")
        return recognise(path, most) if kind is None else make_source(kind, most)
    except FileNotFoundError:
        raise CommandFailed(
            f"File or folder {path} does not exist. Name an existing file or folder.", USAGE
        ) from None
    except OSError as failure:
        reason = failure.strerror or failure
        raise CommandFailed(f"{path} cannot be read: {reason}. Check its permissions.", USAGE) from failure
    except UnknownKind as refusal:
        raise CommandFailed(str(refusal), USAGE) from refusal


def _refuse_own(path: Path, config: Config) -> None:
    """Raise an error if the source contains the data directory or notes folder, or is inside one of them."""
    real = os.path.realpath(path)
    for own in (config.of(StorageConfig).data_dir, config.of(StorageConfig).notes_folder):
        target = os.path.realpath(own)
        if _is_within(real, target):
            raise CommandFailed(
                f"{path} is inside {own}, which this knowledge base already serves, so its notes "
                "need no import. Name a source outside that folder.",
                USAGE,
            )
        if _is_within(target, real):
            raise CommandFailed(
                f"{own}, the target of the import, is inside {path}, so the folder would be "
                "imported into itself. Name a folder in the source, or another data directory "
                "with --data-dir.",
                USAGE,
            )


def _is_within(inner: str, outer: str) -> bool:
    return (inner + os.sep).startswith(outer.rstrip(os.sep) + os.sep)


async def _import(
    session: CommandSession, source: Source, path: Path, options: Options, told: ImportProgress
) -> ImportReport:
    try:
        async with _writer(session, options) as writer:
            return await ImportRun(source, path, writer, options, told).run()
    except* LithosError as refusals:
        raise CommandFailed(str(first_of(refusals)), USAGE) from None
    except* ImportRefused as refusals:
        raise CommandFailed(str(first_of(refusals))) from None


@asynccontextmanager
async def _writer(session: CommandSession, options: Options) -> AsyncIterator[ImportWriter]:
    """Open the writer for the import.

    If a server is running, the writer is that server. Otherwise the writer runs in this process and indexes
    all notes before it closes.
    """
    if await find_owner(session) is not None:
        owner = owner_now(session, STEP_TIMEOUT)
        if owner is None:
            raise CommandFailed(
                "The server that owned the data directory has just stopped. Run the import again.", 4
            )
        yield RemoteWriter(owner)
        return
    from lithos.search.whole_index import WholeIndex  # imported here because it loads the server's modules

    config = session.config.replace(
        attrs.evolve(session.config.of(ServerConfig), watch_files=False),
        attrs.evolve(session.config.of(SearchConfig), tier="static"),
    )
    storage = config.of(StorageConfig)
    with tempfile.TemporaryDirectory(prefix="lithos-import-") as folder:
        if options.dry_run and storage.vault is None and not storage.notes_folder.is_dir():
            # A dry run must not create a data directory, so it uses a temporary one.
            config = config.replace(attrs.evolve(storage, data_dir=Path(folder)))
        async with local_servers(session).run(config) as server:
            sys.setswitchinterval(SWITCH_INTERVAL)
            with acting_as(COMMAND):
                yield server.get(Importing)
            if not options.dry_run:
                with trio.move_on_after(READY_WAIT):
                    await server.get(WholeIndex).complete()
