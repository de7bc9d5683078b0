"""The kinds of sources, in the order in which one is recognised: what is more particular comes first."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from lithos.core.importing import ImportRefused, Source

#: Kind, module below `lithos.stores.importing`, class. One that is not there yet is not offered.
KINDS: Final = (
    ("lithos", "upstream", "UpstreamSource"),
    ("basic-memory", "basic_memory", "BasicMemorySource"),
    ("server-memory", "server_memory", "ServerMemorySource"),
    ("claude-memory", "claude_memory", "ClaudeMemorySource"),
    ("chatgpt", "conversations", "ChatGptSource"),
    ("claude", "conversations", "ClaudeSource"),
    ("mem0", "jsonl", "Mem0Source"),
    ("jsonl", "jsonl", "JsonLinesSource"),
    ("markdown", "markdown", "MarkdownSource"),
)


class UnknownKind(ImportRefused):
    """No such kind, or none is recognised: the message lists them."""


def known_kinds() -> list[str]:
    """The names of all kinds that are there."""
    return [kind for kind, _, _ in KINDS if _find(kind) is not None]


def make_source(kind: str) -> Source:
    """The reader of a kind. Raises `UnknownKind`."""
    found = _find(kind)
    if found is None:
        raise UnknownKind(f"There is no kind {kind!r} of sources. Kinds: {', '.join(known_kinds())}.")
    source: Source = found()
    return source


def recognise(path: Path) -> Source:
    """The reader of the first kind that a file or folder looks like. Raises `UnknownKind`."""
    for kind, _, _ in KINDS:
        found = _find(kind)
        if found is not None and (source := found()).recognises(path):
            known: Source = source
            return known
    raise UnknownKind(
        f"{path} looks like none of the kinds of sources. Name its kind with --from: "
        f"{', '.join(known_kinds())}."
    )


def _find(kind: str) -> Any:
    """The class of a kind, or None."""
    for name, module, class_name in KINDS:
        if name == kind and find_spec(f"lithos.stores.importing.{module}") is not None:
            return getattr(import_module(f"lithos.stores.importing.{module}"), class_name, None)
    return None
