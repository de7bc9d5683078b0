"""Agent clients that keep memory files: where the files are, and how much of the index a client loads.

The facts were looked up on 2026-11-29:

* Claude Code keeps one folder per repository, `~/.claude/projects/<path of the repository>/memory/`, in which
  each character of the path that is not a letter or digit is `-`. `CLAUDE_CONFIG_DIR` replaces `~/.claude`.
  The setting `autoMemoryDirectory` names another folder, and `autoMemoryEnabled` switches the memory off. A
  session loads the first 200 lines or 25 KB of `MEMORY.md`, and topic files on demand
  (https://code.claude.com/docs/en/memory).
* Codex keeps one folder for all projects, `~/.codex/memories/`, with `MEMORY.md`, `memory_summary.md`,
  `raw_memories.md` and `rollout_summaries/`. `CODEX_HOME` replaces `~/.codex`. A session loads at most 5,000
  tokens of `memory_summary.md` (https://developers.openai.com/codex/memories, and
  codex-rs/core/src/memories in github.com/openai/codex).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from attrs import frozen

#: Folder of the vault below which adopted notes are served.
TOP: Final = "memory"
#: Name of the part of a path that stands for all projects.
ALL: Final = "all"
#: Maximum number of characters of a project in a path.
_LONGEST_NAME: Final = 60
#: Maximum number of characters of a folder name of Claude Code. A longer name ends with a hash.
_LONGEST_SLUG: Final = 200
_NOT_WORD: Final = re.compile(r"[^\w.-]+")
_NOT_ALPHANUMERIC: Final = re.compile(r"[^a-zA-Z0-9]")


@frozen(kw_only=True)
class MemoryClient:
    """A client, its index file, and how much of the index a session loads.

    `most_lines` is None if the client has no limit of lines.
    """

    name: str
    title: str
    index: str
    most_lines: int | None
    most_bytes: int
    #: Names under which the client introduces itself over MCP, in lower case.
    called: tuple[str, ...]
    #: Whether Lithos may move lines of the index. Codex writes its summary again, in a form of its own.
    may_be_trimmed: bool = False

    def excess(self, data: bytes) -> str:
        """Return how far an index exceeds the limits of the client, or "" if the whole index is loaded."""
        lines = data.count(b"\n") + (not data.endswith(b"\n"))
        found = []
        if self.most_lines is not None and lines > self.most_lines:
            found.append(f"{lines} lines of at most {self.most_lines}")
        if len(data) > self.most_bytes:
            found.append(f"{len(data):,} bytes of at most {self.most_bytes:,}")
        return " and ".join(found)


CLIENTS: Final[Mapping[str, MemoryClient]] = {
    "claude-code": MemoryClient(
        name="claude-code",
        title="Claude Code",
        index="MEMORY.md",
        most_lines=200,
        most_bytes=25_000,
        called=("claude-code", "claude code"),
        may_be_trimmed=True,
    ),
    # A token of English text has about 4 bytes. With 20,000 bytes, text of other languages may be cut.
    "codex": MemoryClient(
        name="codex",
        title="Codex",
        index="memory_summary.md",
        most_lines=None,
        most_bytes=20_000,
        called=("codex", "codex-mcp-client"),
    ),
}


def client_of(agent: str | None) -> str | None:
    """Return the client that an agent id such as `claude-code@host` names, or None."""
    name = (agent or "").partition("@")[0].strip().lower()
    return next((each.name for each in CLIENTS.values() if name == each.name or name in each.called), None)


def slug_of(path: str) -> str:
    """Return the name of the folder that Claude Code has for the path of a repository."""
    return _NOT_ALPHANUMERIC.sub("-", path)


def is_slug_of(name: str, path: str) -> bool:
    """Return whether a folder name of Claude Code belongs to a path. Long names end with a hash."""
    slug = slug_of(path)
    if len(slug) <= _LONGEST_SLUG:
        return name == slug
    return name.startswith(slug[:_LONGEST_SLUG])


def name_in_path(project: str) -> str:
    """Return the part of a note path for a project: the last part of its key, without special characters."""
    name = _NOT_WORD.sub("-", project.rstrip("/").rpartition("/")[2]).strip(".-_")
    return name[:_LONGEST_NAME].strip(".-_") or "project"
