"""Reader for basic-memory projects: unchanged notes, with the tags and edges stated in their text.

Files stay byte for byte the same, except for addresses of notes. A link such as `memory://PROJECT/PATH` (the
project is optional) or `PROJECT::PATH` (https://docs.basicmemory.com/concepts/memory-urls) becomes a link to
the note's file. Link targets may be titles, paths or permalinks, and newer permalinks begin with the project.
To resolve them, the reader first reads the beginning of every file. This needs some hundred bytes of memory
per file.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import quote

import yaml
from attrs import define, evolve, field

from lithos.imports.files.reading import MarkdownFile, read_head, read_markdown, walk
from lithos.imports.model.importing import (
    ImportedAttachment,
    ImportRefused,
    Item,
    Malformed,
    Record,
    RecordEdge,
)
from lithos.imports.model.observations import permalink_of, read_statements
from lithos.imports.model.texts import digest, tags_of
from lithos.notes.links.links import scan_targets
from lithos.text.markdown import mask_code
from lithos.text.yaml.layout import read_layout

_SUFFIX: Final = ".md"
_SCHEME: Final = "memory://"
_WIKI: Final = re.compile(r"\[\[([^\[\]|\n]{1,2000})(?:\|([^\[\]\n]{0,2000}))?\]\]")
_MARKDOWN: Final = re.compile(r"\]\((memory://[^\s()<>]{1,2000})\)")
#: Number of files whose beginning is read to distinguish a project from other Markdown folders.
_LOOKED_AT: Final = 12
_HEAD: Final = re.compile(rb"\A---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)", re.DOTALL | re.MULTILINE)
_KEY: Final = re.compile(rb"^(title|permalink|type):[ \t]*(\S[^\r\n]{0,1000}?)[ \t]*$", re.MULTILINE)
_STATEMENT: Final = re.compile(
    rb"^[ \t]*[-*+][ \t]+(?:\[\w[^\[\]()\n]{1,60}\][ \t]\S|[\w-]{2,60}[ \t]+\[\[)", re.MULTILINE
)


class BasicMemory:
    """Source of kind `basic-memory`."""

    kind = "basic-memory"

    def recognises(self, path: Path) -> bool:
        """Return whether a note has a permalink, and also a type, an observation or a relation."""
        if not path.is_dir() or (path / ".obsidian" / "publish.json").exists():
            return False
        notes = (file for name, file in islice(walk(path), 200) if name.endswith(_SUFFIX))
        return any(_is_note(read_head(file)) for file in islice(notes, _LOOKED_AT))

    def read(self, path: Path) -> Iterator[Item]:
        """Read the notes and attachments of the project. Raises `ImportRefused`."""
        if not path.is_dir():
            raise ImportRefused(
                f"{path} is not a folder. Name the folder of a basic-memory project: "
                "~/basic-memory by default, or a folder that `basic-memory project list` shows."
            )
        names = _find_names(path)
        if not names.count:
            raise ImportRefused(
                f"{path} contains no Markdown files. Name the folder of a basic-memory project."
            )
        for name, file in walk(path):
            if name.endswith(_SUFFIX):
                yield _read_note(name, file, names)
            else:
                yield from _attachment(name, file)


def _attachment(name: str, file: Path) -> Iterator[ImportedAttachment | Malformed]:
    try:
        yield ImportedAttachment(name, file, file.stat().st_size)
    except OSError as error:
        yield Malformed(name, f"the file cannot be read ({error})")


def _is_note(head: bytes) -> bool:
    keys = {key for key, _ in _keys(head)}
    return b"permalink" in keys and (b"type" in keys or bool(_STATEMENT.search(head)))


def _keys(head: bytes) -> list[tuple[bytes, bytes]]:
    found = _HEAD.match(head)
    return _KEY.findall(found[1]) if found else []


@define  # bounded: one for each file of an import
class _Names:
    """Paths of the notes, by the names that links use.

    The names are titles, permalinks and paths in lower case. If a permalink and a title are equal, the
    permalink counts.
    """

    permalinks: dict[str, str] = field(factory=dict)
    others: dict[str, str] = field(factory=dict)
    #: Project names with which permalinks may begin.
    projects: set[str] = field(factory=set)
    #: Number of files with each file name, in all folders.
    stems: Counter[str] = field(factory=Counter)

    @property
    def count(self) -> int:
        """Return the number of notes."""
        return self.stems.total()

    def add(self, name: str, head: bytes) -> None:
        """Add a note. If several notes share a name, the name refers to the first note."""
        given = {key: _scalar(value) for key, value in _keys(head)}
        own = permalink_of(name)
        if permalink := given.get(b"permalink"):
            said = permalink_of(permalink)
            self.permalinks.setdefault(said, name)
            if said.endswith(f"/{own}"):
                self.projects.add(said.removesuffix(f"/{own}"))
        self.permalinks.setdefault(own, name)
        stem = name.rpartition("/")[2].removesuffix(_SUFFIX)
        self.stems[stem] += 1
        self.others.setdefault((given.get(b"title") or stem).lower(), name)
        self.others.setdefault(name.removesuffix(_SUFFIX).lower(), name)

    def path(self, target: str) -> str | None:
        """Return the path of the note to which a link refers.

        The target may begin with the project's name.
        """
        page = target.partition("#")[0].strip() or target
        page = page.removeprefix(_SCHEME).replace("::", "/").strip("/")
        project, _, rest = page.partition("/")
        for each in (page, rest) if permalink_of(project) in self.projects and rest else (page,):
            for name in (permalink_of(each), each.lower(), each.lower().removesuffix(_SUFFIX)):
                if name in self.permalinks:
                    return self.permalinks[name]
                if name in self.others:
                    return self.others[name]
        return None


def _find_names(root: Path) -> _Names:
    """Collect the names of all notes in a project."""
    names = _Names(projects={permalink_of(root.resolve().name)})
    for name, file in walk(root):
        if name.endswith(_SUFFIX):
            names.add(name, read_head(file))
    return names


def _scalar(value: bytes) -> str:
    """Return the text of a plain or quoted YAML scalar."""
    text = value.decode("utf-8", "replace")
    if text[0] not in "'\"":
        return text.partition(" #")[0].rstrip()
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return text.strip("'\"")
    return found if isinstance(found, str) else text.strip("'\"")


def _with_paths(text: str, start: int, name: str, names: _Names) -> tuple[str, tuple[str, ...]]:
    """Return the note's text. Addresses after position `start` are replaced by links to note files.

    Code is not changed. The second value lists the addresses that match no note and therefore cannot become
    links.
    """
    masked = mask_code(text[start:])
    edits: list[tuple[int, int, str]] = []
    dead: dict[str, None] = {}
    for found in _WIKI.finditer(masked):
        target, shown = found[1], found[2]
        path = names.path(target)
        if path is not None and _is_address(target, names):
            edits.append((found.start(), found.end(), _link(path, target, shown, name, names)))
    for found in _MARKDOWN.finditer(masked):
        path = names.path(found[1])
        if path is not None:
            anchor = found[1].partition("#")[1:]
            edits.append((found.start(1), found.end(1), _relative(path, name) + "".join(anchor)))
        elif "*" not in found[1]:
            dead[found[1]] = None
    for begin, end, new in sorted(edits, reverse=True):
        text = text[: start + begin] + new + text[start + end :]
    return text, tuple(dead)


def _is_address(target: str, names: _Names) -> bool:
    """Return whether a wiki-link target can only be a note address."""
    first, slash, _ = target.strip().partition("/")
    is_in_project = bool(slash) and permalink_of(first) in names.projects
    return is_in_project or target.strip().startswith(_SCHEME) or "::" in target


def _link(path: str, target: str, shown: str | None, name: str, names: _Names) -> str:
    """Return a wiki-link to the note at `path`.

    If several notes share its file name, return a Markdown link.
    """
    anchor = "".join(target.partition("#")[1:])
    text = shown or target.partition("#")[0].strip()
    if names.stems[path.rpartition("/")[2].removesuffix(_SUFFIX)] > 1:
        return f"[{text}]({_relative(path, name)}{anchor})"
    return f"[[{path.removesuffix(_SUFFIX)}{anchor}|{text}]]"


def _relative(path: str, name: str) -> str:
    return quote(posixpath.relpath(path, posixpath.dirname(name) or "."))


def _read_note(name: str, file: Path, names: _Names) -> Record | Malformed:
    try:
        found = read_markdown(file, name)
    except (OSError, ValueError) as error:
        return Malformed(name, f"the file cannot be read ({error})")
    statements = read_statements(found.content)
    edges = dict.fromkeys(
        RecordEdge(kind, names.path(target) or target) for kind, target in statements.relations
    )
    content, dead = _with_paths(found.content, 0, name, names)
    text = found.text
    if text is not None and content != found.content:
        text = _with_paths(text.decode(), read_layout(text).body_start, name, names)[0].encode()
    found = evolve(found, content=content, text=text)
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
        dead=dead,
    )


def _title_of(found: MarkdownFile, name: str) -> str:
    title = (found.heading or found.name or "").strip()
    return title or name.rpartition("/")[2].removesuffix(_SUFFIX)
