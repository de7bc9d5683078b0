"""Rules for memory files of coding agents: names, scopes and imports with `@path`.

Memory files are `CLAUDE.md`, `CLAUDE.local.md` and `AGENTS.md` in any folder of a project, files in
`.claude/rules`, Claude Code's notes about a project (`projects/<project>/memory`), and the notes of its
subagents (`.claude/agent-memory/<agent>`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import dirname, join, normpath
from typing import Final

from attrs import frozen

from lithos.text.markdown import mask_code
from lithos.text.pieces import matches_in_lines

INSTRUCTIONS: Final = frozenset(("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENTS.override.md"))
INDEX: Final = "MEMORY.md"
_AGENT_FOLDERS: Final = frozenset(("agent-memory", "agent-memory-local"))
#: Namespace of memories that apply to all projects of a person.
USER: Final = "user"
#: An `@path` as Claude Code recognises it: at the start of a line or after white space, and with a dot or
#: slash in the path.
_IMPORT: Final = re.compile(r"(?<![^\s(])@((?:~/|\.{1,2}/|/)?[\w.\-/\\]{1,400})")
#: Titles that carry no information.
_VAGUE: Final = frozenset({
    "", "claude.md", "agents.md", "claude.local.md", "memory.md", "memory", "memory index", "claude",
    "agents",
})  # fmt: skip


@frozen
class MemoryScope:
    """Scope of a memory: a kind (`user`, `project`, `local`, `rules`, `auto`, `agent`) and a namespace."""

    kind: str
    namespace: str


def scope_of(path: str, root: str, *, is_home: bool) -> MemoryScope | None:
    """Return the scope of the file at `path`, relative to the folder `root`, or None for other files.

    `is_home` means that the folder is the `.claude` folder of a home directory rather than of a project.
    """
    folders, name = path.split("/")[:-1], path.rpartition("/")[2]
    if not name.endswith(".md"):
        return None
    if "memory" in folders and "projects" in folders[: folders.index("memory")]:
        # `-home-ann-work-shop` is the path of a project with dashes instead of slashes. The first dash is
        # dropped.
        return MemoryScope("auto", folders[folders.index("memory") - 1].strip("-") or "project")
    agent = next((at for at, each in enumerate(folders) if each in _AGENT_FOLDERS), None)
    if agent is not None and (is_home or ".claude" in folders[:agent]):
        inner = "/".join(folders[agent + 1 : agent + 2])
        base = USER if is_home else _joined(root, folders[: folders.index(".claude")])
        return MemoryScope("agent", "/".join(filter(None, (base, "agents", inner))))
    where = _instruction_folder(folders, name, is_home=is_home)
    if where is None:
        return None
    kind, inside = where
    return MemoryScope(kind, USER if is_home else _joined(root, inside))


def _instruction_folder(folders: list[str], name: str, *, is_home: bool) -> tuple[str, list[str]] | None:
    """Return the kind and the project folder of a file with instructions or rules."""
    if is_home and folders[:1] == ["rules"]:
        return "rules", []
    if ".claude" in folders:
        at = folders.index(".claude")
        if folders[at + 1 : at + 2] == ["rules"]:
            return "rules", folders[:at]
        if folders[at + 1 :] or name not in INSTRUCTIONS:
            return None
        folders = folders[:at]
    if name not in INSTRUCTIONS or (is_home and folders):
        return None
    return (USER if is_home else "local" if name == "CLAUDE.local.md" else "project"), folders


def _joined(root: str, folders: list[str]) -> str:
    return "/".join([root.lstrip(".") or "project", *folders])


def title_of(heading: str | None, name: str, namespace: str) -> str:
    """Return a title that distinguishes the file from files with other scopes."""
    said = (heading or "").strip()
    stem = name.removesuffix(".md")
    if said.lower() in _VAGUE:
        said = name if name in INSTRUCTIONS or name == INDEX else stem
    return f"{said} ({namespace})" if name in INSTRUCTIONS or name == INDEX else said


def imports_of(content: str, path: str) -> Iterator[str]:
    """Yield the files that the text of the file at `path` names with `@path`, relative to its folder.

    Code is ignored. Paths in a home directory or outside the folder are left out.
    """
    seen: set[str] = set()
    masked = mask_code(content)
    for found in matches_in_lines(_IMPORT, masked, 0):
        written = found[1].rstrip(".,;:)").replace("\\", "/")
        if written.startswith(("~", "/")) or not ("." in written or "/" in written):
            continue
        target = normpath(join(dirname(path), written))
        if not target.startswith("..") and target not in seen:
            seen.add(target)
            yield target


def visible_path(path: str) -> str:
    """Return a path without the dots that hide its folders, because Lithos ignores hidden folders."""
    return "/".join(part.lstrip(".") or "_" for part in path.split("/"))
