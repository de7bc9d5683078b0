"""Reader for Markdown folders: an Obsidian vault, a Logseq export or documentation. Blocks.

Files that `serve --vault` ignores do not become notes: names with a leading dot, templates, and files that
Obsidian ignores. All other files are attachments.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from attrs import evolve

from lithos.imports.files.logseq import LogseqGraph
from lithos.imports.files.reading import read_moment
from lithos.imports.model.importing import (
    Degraded,
    ImportedAttachment,
    ImportRefused,
    Item,
    Malformed,
    Record,
)
from lithos.kernel.databases.private_files import open_regular
from lithos.kernel.databases.unserved_notes import find_own_notes
from lithos.kernel.values.times import from_nanoseconds
from lithos.notes.files.lookup import list_attachments
from lithos.notes.files.tree import is_text, walk_notes
from lithos.notes.files.vault_settings import read_ignored
from lithos.notes.format.document import parse_identified
from lithos.notes.links.links import scan_links
from lithos.notes.model.ignored import Ignored
from lithos.text.yaml.nodes import UnreadableNote
from lithos.text.yaml.vault_style import VaultStyle

#: Maximum number of bytes of a file to read.
LARGEST_FILE: Final = 8 * 1024 * 1024
_STYLE: Final = VaultStyle.of_foreign()
#: Date keys of other programs. `notes.format.healing` already reads ISO 8601 dates in `created` and
#: `updated`.
_CREATED: Final = ("created_at", "created", "date created", "date")
_UPDATED: Final = ("updated_at", "updated", "modified", "date modified")
#: Placeholder for a missing id. The note gets its id when it is written.
_NO_ID: Final = "-"
#: Logseq's folder for settings and backups, next to `pages/` and `journals/`.
_LOGSEQ: Final = "logseq/"


class MarkdownSource:
    """Source of kind `markdown`: Markdown files in a folder."""

    kind = "markdown"

    def recognises(self, path: Path) -> bool:
        """Return whether the folder or one of its subfolders contains Markdown files."""
        return path.is_dir() and find_own_notes(path) is not None

    def read(self, path: Path) -> Iterator[Item]:
        """Yield the notes in path order, then the attachments. Raises `ImportRefused`."""
        if not path.is_dir():
            raise ImportRefused(f"{path} is not a folder of Markdown files. Name the folder.")
        is_logseq = (path / _LOGSEQ / "config.edn").is_file()
        yield from read_folder(path, read_ignored(path, None), is_logseq=is_logseq)


def read_folder(path: Path, ignored: Ignored, *, is_logseq: bool = False) -> Iterator[Item]:
    """Yield notes in path order, then attachments. Logseq's own files are skipped. Raises `ImportRefused`."""
    without = _LOGSEQ if is_logseq else None
    root = os.path.realpath(path)
    try:
        notes = sorted(name for name, _ in walk_notes(root, ignored))
    except OSError as failure:
        raise ImportRefused(
            f"{path} cannot be read: {failure.filename}: {failure.strerror or failure}. "
            "Check its permissions."
        ) from failure
    notes = [name for name in notes if without is None or not name.startswith(without)]
    graph = LogseqGraph.look(path, _contents(root, notes)) if is_logseq else None
    for name in notes:
        yield from _read_note(root, name, graph)
    del notes
    for name in sorted(list_attachments(root)):
        if without is None or not name.startswith(without):
            yield from _find_attachment(root, name, ignored)


def _contents(root: str, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of all readable files."""
    for name in names:
        with suppress(OSError, _TooLarge):
            yield name, _read_file(os.path.join(root, name))[0]


def _read_note(root: str, name: str, graph: LogseqGraph | None) -> Iterator[Item]:
    try:
        data, modified = _read_file(os.path.join(root, name))
        document, identified = parse_identified(data, name, modified, _NO_ID, _STYLE)
    except _TooLarge as problem:
        yield Malformed(name, f"the file has {problem.args[0]:,} bytes, more than {LARGEST_FILE:,}; split it")
        return
    except OSError as failure:
        yield Malformed(name, f"the file cannot be read: {failure.strerror or failure}")
        return
    except UnreadableNote as problem:
        yield Malformed(name, problem.reason)
        return
    note = document.note
    moments: list[datetime | None] = []
    for own, keys in ((note.created_at, _CREATED), (note.updated_at, _UPDATED)):
        moment = own if own != modified else None
        key = next((key for key in keys if key in note.extra), None) if moment is None else None
        if key is not None and (moment := read_moment(note.extra[key])) is None:
            told = str(note.extra[key])[:100]
            yield Degraded(name, f"{key} {told!r} is not a readable date; it is kept unchanged")
        moments.append(moment)
    properties: dict[str, Any] = {"id": note.id} if identified else {}
    record = Record(
        # The id begins with the name of the folder, because two sources often both have an `index.md`.
        id=f"{os.path.basename(root)}/{name}",
        hash=hashlib.blake2b(data, digest_size=16).hexdigest(),
        position=name,
        title=note.title,
        content=document.content,
        path=name,
        tags=note.all_tags,
        created_at=moments[0],
        updated_at=moments[1] or modified,
        source_url=note.source_url,
        properties=properties,
        links=len(scan_links(document.content, name)),
        text=data,
    )
    yield record if graph is None else _as_page(record, graph, modified)


def _as_page(record: Record, graph: LogseqGraph, modified: datetime) -> Record:
    """Return the record as a Logseq page."""
    assert record.text is not None
    page = graph.page(record.position, record.text, record.title)
    document = parse_identified(page.data, record.position, modified, _NO_ID, _STYLE)[0]
    created = record.created_at or page.created_at
    seen = repr((page.data, page.title, page.aliases, page.tags, sorted(page.properties.items())))
    return evolve(
        record,
        hash=hashlib.blake2b(seen.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest(),
        title=page.title,
        content=document.content,
        tags=tuple(dict.fromkeys((*record.tags, *page.tags))),
        aliases=page.aliases,
        created_at=None if created is not None and created > modified else created,
        properties={**page.properties, **record.properties},
        links=len(scan_links(document.content, record.position)),
        text=page.data,
        is_titled=page.is_titled,
        dead=page.dead,
    )


class _TooLarge(Exception):
    """Error: a file has more than `LARGEST_FILE` bytes."""


def _read_file(path: str) -> tuple[bytes, datetime]:
    with open_regular(path) as file:
        status = os.fstat(file.fileno())
        data = file.read(LARGEST_FILE + 1) if status.st_size <= LARGEST_FILE else b""
        if status.st_size > LARGEST_FILE or len(data) > LARGEST_FILE:
            raise _TooLarge(max(status.st_size, len(data)))
        return data, from_nanoseconds(status.st_mtime_ns)


def _find_attachment(root: str, name: str, ignored: Ignored) -> Iterator[Item]:
    if not is_text(name):
        yield Malformed(name.encode("utf-8", "backslashreplace").decode(), "the file name is not valid UTF-8")
        return
    if ignored.covers(name):
        return
    file = Path(root) / name
    try:
        real, status = os.path.realpath(file), file.stat()
    except OSError as failure:
        yield Malformed(name, f"the file cannot be read: {failure.strerror or failure}")
        return
    if not real.startswith(root + os.sep):
        yield Malformed(name, "the file is a link that leads outside the folder")
    elif stat.S_ISREG(status.st_mode):
        yield ImportedAttachment(name, file, status.st_size)
