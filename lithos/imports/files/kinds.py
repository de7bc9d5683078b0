"""Sources to import from: one module a kind, each reads its files into records and never writes them.

The import service reads records from here. Decisions about records in this knowledge base are made elsewhere.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Final

from lithos.imports.model.importing import MOST_CONTENT, ImportRefused, Source

#: Kind, module of `lithos.imports.files`, class or function, and whether it takes the maximum length of a
#: note.
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
    """No such kind, or none is recognised: the message lists them."""


def known_kinds() -> list[str]:
    """The names of all kinds."""
    return [kind for kind, *_ in KINDS]


def make_source(kind: str, most_content: int = MOST_CONTENT) -> Source:
    """The reader of a kind; `most_content` is how many bytes the text of a note may have.

    Raises `UnknownKind`. The module of a kind is imported when it is asked for.
    """
    for name, module, factory, is_told in KINDS:
        if name == kind:
            make = getattr(import_module(f"lithos.imports.files.{module}"), factory)
            source: Source = make(most_content) if is_told else make()
            return source
    raise UnknownKind(f"There is no kind {kind!r} of sources. Kinds: {', '.join(known_kinds())}.")


def recognise(path: Path, most_content: int = MOST_CONTENT) -> Source:
    """The reader of the first kind that a file or folder looks like. Raises `UnknownKind`."""
    for kind in known_kinds():
        source = make_source(kind, most_content)
        if source.recognises(path):
            return source
    raise UnknownKind(
        f"{path} looks like none of the kinds of sources. Name its kind with --from: "
        f"{', '.join(known_kinds())}."
    )
