"""A project folder of basic-memory: its notes as they are, with the tags and edges that their text states.

The files are kept byte for byte. Link targets may be titles, paths or permalinks, so the heads of all files
are read first; what is known of each are some hundred bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import yaml

from lithos.core.formats.observations import permalink_of, read_statements
from lithos.core.formats.texts import digest, tags_of
from lithos.core.importing import Attachment, ImportRefused, Item, Malformed, Record, RecordEdge
from lithos.core.notes.links import scan_targets
from lithos.stores.importing.reading import MarkdownFile, read_head, read_markdown, walk

_SUFFIX: Final = ".md"
#: Files whose heads tell a project from other folders of Markdown.
_LOOKED_AT: Final = 12
_HEAD: Final = re.compile(rb"\A---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)", re.DOTALL | re.MULTILINE)
_KEY: Final = re.compile(rb"^(title|permalink|type):[ \t]*(\S[^\r\n]{0,1000}?)[ \t]*$", re.MULTILINE)
_STATEMENT: Final = re.compile(
    rb"^[ \t]*[-*+][ \t]+(?:\[\w[^\[\]()\n]{1,60}\][ \t]\S|[\w-]{2,60}[ \t]+\[\[)", re.MULTILINE
)


class BasicMemory:
    """The kind `basic-memory`."""

    kind = "basic-memory"

    def recognises(self, path: Path) -> bool:
        """Whether some note has a permalink and a type, or a permalink and an observation or relation."""
        if not path.is_dir() or (path / ".obsidian" / "publish.json").exists():
            return False
        notes = (file for name, file in islice(walk(path), 200) if name.endswith(_SUFFIX))
        return any(_is_note(read_head(file)) for file in islice(notes, _LOOKED_AT))

    def read(self, path: Path) -> Iterator[Item]:
        """Raises `ImportRefused`."""
        if not path.is_dir():
            raise ImportRefused(
                f"{path} is no folder. Name the folder of a basic-memory project, ~/basic-memory unless you "
                "chose another: `basic-memory project list` shows them."
            )
        ids, count = _find_names(path)
        if not count:
            raise ImportRefused(f"{path} has no Markdown files. Name the folder of a basic-memory project.")
        for name, file in walk(path):
            if name.endswith(_SUFFIX):
                yield _read_note(name, file, ids)
            else:
                yield from _attachment(name, file)


def _attachment(name: str, file: Path) -> Iterator[Attachment | Malformed]:
    try:
        yield Attachment(name, file, file.stat().st_size)
    except OSError as error:
        yield Malformed(name, f"it cannot be read ({error})")


def _is_note(head: bytes) -> bool:
    keys = {key for key, _ in _keys(head)}
    return b"permalink" in keys and (b"type" in keys or bool(_STATEMENT.search(head)))


def _keys(head: bytes) -> list[tuple[bytes, bytes]]:
    found = _HEAD.match(head)
    return _KEY.findall(found[1]) if found else []


def _find_names(root: Path) -> tuple[dict[str, str], int]:
    """What notes are linked by (title, permalink, path; lower case), to path, and how many there are.

    Of several notes with one name the first in order is meant; a permalink comes before a title.
    """
    permalinks: dict[str, str] = {}
    others: dict[str, str] = {}
    count = 0
    for name, file in walk(root):
        if not name.endswith(_SUFFIX):
            continue
        count += 1
        given = {key: _scalar(value) for key, value in _keys(read_head(file))}
        if permalink := given.get(b"permalink"):
            permalinks.setdefault(permalink_of(permalink), name)
        permalinks.setdefault(permalink_of(name), name)
        stem = name.rpartition("/")[2].removesuffix(_SUFFIX)
        others.setdefault((given.get(b"title") or stem).lower(), name)
        others.setdefault(name.removesuffix(_SUFFIX).lower(), name)
    return {**others, **permalinks}, count


def _scalar(value: bytes) -> str:
    """The text of a plain or quoted YAML scalar."""
    text = value.decode("utf-8", "replace")
    if text[0] not in "'\"":
        return text.partition(" #")[0].rstrip()
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return text.strip("'\"")
    return found if isinstance(found, str) else text.strip("'\"")


def _resolve(target: str, ids: dict[str, str]) -> str:
    """The id of the note that a link means; the target itself when there is none."""
    page = target.partition("#")[0].strip() or target
    for name in (page.lower(), page.lower().removesuffix(_SUFFIX), permalink_of(page)):
        if name in ids:
            return ids[name]
    return target


def _read_note(name: str, file: Path, ids: dict[str, str]) -> Record | Malformed:
    try:
        found = read_markdown(file, name)
    except (OSError, ValueError) as error:
        return Malformed(name, f"it cannot be read ({error})")
    statements = read_statements(found.content)
    edges = dict.fromkeys(RecordEdge(kind, _resolve(target, ids)) for kind, target in statements.relations)
    permalink = found.extra.get("permalink")
    aliases = (
        (permalink,)
        if isinstance(permalink, str) and permalink and permalink != name.removesuffix(_SUFFIX)
        else ()
    )
    return Record(
        id=name,
        hash=digest((found.whole,)),
        position=name,
        title=_title_of(found, name),
        content=found.content,
        path=name,
        tags=tuple(dict.fromkeys((*found.tags, *tags_of(statements.tags)))),
        created_at=found.created_at,
        updated_at=found.updated_at,
        properties={} if found.text is not None else found.extra,
        edges=tuple(edges),
        links=len(scan_targets(found.content)),
        text=found.text,
        aliases=aliases,
    )


def _title_of(found: MarkdownFile, name: str) -> str:
    title = (found.heading or found.name or "").strip()
    return title or name.rpartition("/")[2].removesuffix(_SUFFIX)
