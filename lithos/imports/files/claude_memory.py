"""Reader for memory files of coding agents: `CLAUDE.md` and `AGENTS.md`, rules, and Claude Code notes.

The reader imports the memory files that `imports/model/memory_files` recognises, and the files that they name
with `@path`. Other Markdown files of a project are ignored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from attrs import frozen

from lithos.imports.files.reading import MarkdownFile, read_markdown, walk
from lithos.imports.model.importing import ImportRefused, Item, Malformed, Record, RecordEdge
from lithos.imports.model.memory_files import (
    INDEX,
    INSTRUCTIONS,
    MemoryScope,
    imports_of,
    scope_of,
    title_of,
    visible_path,
)
from lithos.imports.model.texts import digest, parse_moment
from lithos.notes.links.links import scan_targets

#: Folder with settings and memories, in a project or in a home directory.
_FOLDER: Final = ".claude"
_MEMORY: Final = "memory"
_SUFFIX: Final = ".md"
#: Maximum depth of nested `@path` imports. Claude Code has the same limit.
_DEPTH: Final = 5
_IMPORTS: Final = "imports"
#: Folders whose presence shows that the source belongs to another program or to another kind of source.
_OTHERS: Final = (".obsidian", ".lithos", "logseq")


@frozen
class _File:
    """A file to read: its path in the source, its path on disk, its scope, and its import depth."""

    name: str
    path: Path
    scope: MemoryScope
    depth: int = 0


class ClaudeMemory:
    """Source of kind `claude-memory`."""

    kind = "claude-memory"

    def recognises(self, path: Path) -> bool:
        """Return whether `path` is a memory file, or a folder that directly contains memory files."""
        if path.is_file():
            return path.name in INSTRUCTIONS or path.name == INDEX
        if not path.is_dir() or any((path / other).exists() for other in _OTHERS):
            return False
        if any((path / name).is_file() for name in (*INSTRUCTIONS, INDEX)):
            return True
        folder = path if path.name == _FOLDER else path / _FOLDER
        return _has_memory(folder) or (_is_home(path) and _has_memory(path))

    def read(self, path: Path) -> Iterator[Item]:
        """Read the memory files and the files that they import with `@path`. Raises `ImportRefused`."""
        root = path.parent if path.is_file() else path
        waiting = deque(_find(path))
        if not waiting:
            raise ImportRefused(
                f"{path} contains no memory files: no CLAUDE.md, CLAUDE.local.md, AGENTS.md, "
                ".claude/rules or projects/<project>/memory. Name a project, ~/.claude, or one "
                "memory folder."
            )
        known = {each.name for each in waiting}
        while waiting:
            file = waiting.popleft()
            try:
                found = read_markdown(file.path, file.name)
            except (OSError, ValueError) as error:
                yield Malformed(file.name, f"the file cannot be read ({error})")
                continue
            targets = [target for target in imports_of(found.content, file.name) if _is_note(root, target)]
            for target in targets:
                if target not in known and file.depth < _DEPTH:
                    known.add(target)
                    waiting.append(_File(target, root / target, file.scope, file.depth + 1))
            yield _record(file, found, [target for target in targets if target in known])


def _has_memory(folder: Path) -> bool:
    """Return whether a `.claude` folder contains rules, instructions or project notes."""
    if any((folder / name).is_file() for name in INSTRUCTIONS) or (folder / "rules").is_dir():
        return True
    return any((folder / name).is_dir() for name in ("agent-memory", "agent-memory-local")) or _has_projects(
        folder
    )


def _has_projects(folder: Path) -> bool:
    try:
        return any((each / _MEMORY).is_dir() for each in sorted((folder / "projects").iterdir())[:200])
    except OSError:
        return False


def _is_home(path: Path) -> bool:
    """Return whether a folder is the `.claude` folder of a home directory, or a copy with another name."""
    return _has_projects(path) or (path.name == _FOLDER and not (path.parent / ".git").exists())


def _is_note(root: Path, target: str) -> bool:
    """Return whether a target, with symlinks resolved, is a Markdown file inside the folder."""
    if not target.endswith(_SUFFIX):
        return False
    try:
        file = (root / target).resolve()
        return file.is_file() and file.is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        return False


def _find(path: Path) -> Iterator[_File]:
    """Yield the memory files of the source in a fixed order."""
    if path.is_file():
        yield _File(path.name, path, _scope_of_one(path))
        return
    if not path.is_dir():
        return
    is_home = _is_home(path)
    is_memory = (path / INDEX).is_file()
    for name, file in walk(path, hidden=frozenset((_FOLDER,))):
        scope = scope_of(name, path.resolve().name, is_home=is_home)
        if scope is None and is_memory and name.endswith(_SUFFIX):
            scope = _scope_of_one(path / INDEX)
        if scope is not None:
            yield _File(name, file, scope)


def _scope_of_one(file: Path) -> MemoryScope:
    """Return the scope of a file or folder that is imported on its own.

    The scope follows from the parent folders.
    """
    whole = file.resolve()
    parents = whole.parts[:-1]
    if _FOLDER in parents:
        at = len(parents) - 1 - parents[::-1].index(_FOLDER)
        name = "/".join(whole.parts[at + 1 :])
        is_home = _is_home(Path(*parents[: at + 1]))
        base = name if is_home else f"{_FOLDER}/{name}"
        inner = scope_of(base, parents[at - 1] if at else "", is_home=is_home)
        if inner is not None:
            return inner
    folder = parents[-2] if len(parents) > 1 and parents[-1] == _MEMORY else parents[-1]
    found = scope_of(whole.name, folder, is_home=False)
    return found or MemoryScope("auto", folder.strip("-") or "project")


def _record(file: _File, found: MarkdownFile, targets: list[str]) -> Record:
    name = file.name.rpartition("/")[2]
    title = title_of(found.name or found.heading, name, file.scope.namespace)
    metadata = found.extra.get("metadata")
    kinds = [found.extra.get("type"), metadata.get("type") if isinstance(metadata, dict) else None]
    kind = next((each for each in kinds if isinstance(each, str) and each.strip()), None)
    return Record(
        id=file.name,
        hash=digest((found.whole, title, file.scope.kind, file.scope.namespace)),
        position=file.name,
        title=title,
        content=found.content,
        path=visible_path(file.name),
        tags=tuple(dict.fromkeys((*found.tags, *((kind.strip(),) if kind else ())))),
        created_at=found.created_at or parse_moment(found.extra.get("created_at")),
        updated_at=found.updated_at,
        namespace=file.scope.namespace,
        properties={"memory_scope": file.scope.kind},
        edges=tuple(RecordEdge(_IMPORTS, target) for target in dict.fromkeys(targets) if target != file.name),
        links=len(scan_targets(found.content, file.name)),
        text=found.text,
    )
