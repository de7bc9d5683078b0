"""The kinds of import sources. The module of each kind reads files into records and never writes.

The import service reads the records from these sources and decides how to handle each record.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Final

from lithos.imports.model.importing import MOST_CONTENT, ImportRefused, Source

#: For each kind: its name, its module in `lithos.imports.files`, its class or function, and whether it takes
#: a maximum note length.
KINDS: Final = (
    ("lithos", "upstream", "UpstreamSource", False),
    ("basic-memory", "basic_memory", "BasicMemory", False),
    ("server-memory", "server_memory", "ServerMemory", True),
    ("claude-memory", "claude_memory", "ClaudeMemory", False),
    ("chatgpt", "conversations", "chatgpt_source", True),
    ("claude", "conversations", "claude_source", True),
    ("jsonl", "jsonl", "JsonLinesSource", False),
    ("markdown", "markdown", "MarkdownSource", False),
)


class UnknownKind(ImportRefused):
    """Error: the kind of a source is unknown or was not recognised. The message lists all kinds."""


def known_kinds() -> list[str]:
    """Return the names of all kinds."""
    return [kind for kind, *_ in KINDS]


def make_source(kind: str, most_content: int = MOST_CONTENT) -> Source:
    """Return a source of the given kind. The text of its notes has at most `most_content` bytes.

    The module of a kind is imported on first use. Raises `UnknownKind`.
    """
    for name, module, factory, is_told in KINDS:
        if name == kind:
            make = getattr(import_module(f"lithos.imports.files.{module}"), factory)
            source: Source = make(most_content) if is_told else make()
            return source
    raise UnknownKind(f"Unknown source kind {kind!r}. Use one of: {', '.join(known_kinds())}.")


def recognise(path: Path, most_content: int = MOST_CONTENT) -> Source:
    """Return a source of the first kind that recognises the file or folder. Raises `UnknownKind`."""
    for kind in known_kinds():
        source = make_source(kind, most_content)
        if source.recognises(path):
            return source
    raise UnknownKind(
        f"The kind of {path} could not be detected. Name the kind with --from: {', '.join(known_kinds())}."
    )
