"""Test collections with relevance judgements: chunks of documents, queries, and the relevant documents.

A collection is a folder with `corpus.jsonl` (`_id`, `doc`, `text`), `queries.jsonl` (`_id`, `text`, perhaps
`kind`) and `qrels.tsv` (query, document, grade). A document with grade 1 or higher is relevant.
"""

from __future__ import annotations

import hashlib
import json
import random
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

_NAMESPACE = uuid.UUID("2f8b4a70-90f5-4f4c-9a60-5b6a2f1c7d11")
_FOLDER_SIZE = 500
#: Title of all notes without a title. A meaningful title would be a hint.
TITLE = "Note"
#: Note layouts: passages (chunks) without a title, whole pages without a title, and whole pages with a title.
#: The title is the query of kind `title` that asks for the page. The last layout is closest to a real vault.
LAYOUTS = ("passages", "pages", "titled")


@frozen
class Chunk:
    """A document or a part of it, which becomes one note.

    `path` is set if the location of the note matters.
    """

    id: str
    doc: str
    text: str
    title: str = TITLE
    path: str = ""

    @property
    def note_id(self) -> str:
        return str(uuid.uuid5(_NAMESPACE, self.id))


@frozen
class JudgedQuery:
    """A query, and the grades of the documents that answer it."""

    id: str
    text: str
    kind: str
    grades: Mapping[str, int]


@frozen
class Collection:
    """The notes to search, and the queries about them."""

    name: str
    chunks: tuple[Chunk, ...]
    queries: tuple[JudgedQuery, ...]

    def sample(self, queries: int | None, seed: int = 7) -> Collection:
        """Return the same notes with fewer queries.

        All queries for one document are either kept or dropped together.
        """
        if queries is None or queries >= len(self.queries):
            return self
        by_document: dict[str, list[str]] = defaultdict(list)
        for query in self.queries:
            by_document[max(query.grades, key=lambda doc: (query.grades[doc], doc))].append(query.id)
        documents = sorted(by_document)
        random.Random(seed).shuffle(documents)
        chosen = [query_id for doc in documents for query_id in by_document[doc]][:queries]
        return evolve(self, queries=tuple(query for query in self.queries if query.id in set(chosen)))

    def laid_out(self, layout: str) -> Collection:
        """Return the same documents in another layout. Queries that became titles are removed."""
        if layout == "passages":
            return self
        texts: dict[str, list[str]] = defaultdict(list)
        for chunk in self.chunks:
            texts[chunk.doc].append(chunk.text)
        titles = {doc: query.text for query in self.queries if query.kind == "title" for doc in query.grades}
        titles = titles if layout == "titled" else {}
        asked = tuple(query for query in self.queries if not titles or query.kind != "title")
        whole = [Chunk(doc, doc, "\n\n".join(parts), titles.get(doc, TITLE)) for doc, parts in texts.items()]
        return Collection(f"{self.name}-{layout}", tuple(whole), asked)

    def documents(self) -> dict[str, str]:
        """Return the document of each note, by note id."""
        return {chunk.note_id: chunk.doc for chunk in self.chunks}

    def fingerprint(self) -> str:
        """Return a hash of all data that is written to the notes."""
        digest = hashlib.sha256()
        for chunk in self.chunks:
            digest.update(f"{chunk.id}\0{chunk.path}\0{chunk.title}\0{chunk.text}\0".encode())
        return digest.hexdigest()[:16]

    def write_notes(self, knowledge: Path) -> None:
        """Write one note per chunk. Chunks without a path are written to folders of a few hundred notes."""
        for number, chunk in enumerate(self.chunks):
            path = knowledge / (chunk.path or f"part-{number // _FOLDER_SIZE:03}/{number:06}.md")
            path.parent.mkdir(parents=True, exist_ok=True)
            head = f"---\nid: {chunk.note_id}\nauthor: bench\n---\n\n# {chunk.title}\n\n"
            path.write_bytes(f"{head}{chunk.text}\n".encode())


def read_collection(folder: Path) -> Collection:
    """Read a collection. Queries without a relevant document in the corpus are skipped."""
    chunks = tuple(Chunk(row["_id"], row["doc"], row["text"]) for row in _rows(folder / "corpus.jsonl"))
    known = {chunk.doc for chunk in chunks}
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        query, doc, grade = line.split("\t")
        if doc in known and int(grade) > 0:
            grades[query][doc] = int(grade)
    queries = tuple(
        JudgedQuery(row["_id"], row["text"], row.get("kind", ""), grades[row["_id"]])
        for row in _rows(folder / "queries.jsonl")
        if row["_id"] in grades
    )
    return Collection(folder.name, chunks, queries)


def read_collections(folder: Path | None, names: Sequence[str]) -> list[Collection]:
    """Read the named collections below `folder`, or all collections there."""
    if folder is None:
        raise SystemExit("No collections were given. Name their folder, or set LITHOS_EVAL.")
    found = sorted(path.parent.name for path in folder.glob("*/corpus.jsonl"))
    return [read_collection(folder / name) for name in names or found]


def _rows(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)
