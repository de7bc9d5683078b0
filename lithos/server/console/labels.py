"""Readable names of kinds, states, operations, types and Lithos's own agents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from lithos.kernel.values.principals import (
    CLI_AGENT,
    ENRICH_AGENT,
    EVALUATE_AGENT,
    IMPORT_AGENT,
    MERGE_AGENT,
    MIGRATION_AGENT,
    SCAN_AGENT,
    TIMER_AGENT,
    UNDO_AGENT,
    WATCHER_AGENT,
)

#: Names that need other words than the name with spaces for underscores.
_WORDS: Final[Mapping[str, str]] = {
    # warnings and versions of notes
    "conflict_markers": "conflict of git", "duplicated": "second file",
    "outside": "changed by another program",
    "copy": "conflict copy kept", "renamed": "moved", "body": "text", "extra": "other keys",
    # edges, and what became of contradictions
    "derived_from_ids": "derived from", "accepted_dual": "both are right", "refuted": "no contradiction",
    "is_example_of": "is an example of", "analogy_to": "is like", "contradicts": "contradicts",
    # access, gates, and searches
    "agent_private": "private to its author", "needs_verify": "to be verified",
    "source_url": "source address", "access_scope": "access", "note_type": "type", "created_at": "created",
    "updated_at": "changed", "expires_at": "expires", "schema_version": "schema",
}  # fmt: skip
#: A name from a program, in a form that people do not write.
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
#: A time in UTC as tools give it.
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d{1,9})?(?:Z|\+00:00)")
#: Names under which Lithos itself acts; the person at the console is not among them.
OWN_AGENTS: Final[Mapping[str, str]] = {
    WATCHER_AGENT: "Another program", SCAN_AGENT: "Another program", TIMER_AGENT: "A timer",
    ENRICH_AGENT: "Enrichment", UNDO_AGENT: "Undo", MERGE_AGENT: "Merging of copies",
    CLI_AGENT: "Command line", IMPORT_AGENT: "Import", EVALUATE_AGENT: "Evaluation",
    MIGRATION_AGENT: "An older version",
}  # fmt: skip


def worded(name: object) -> str:
    """The name of a kind, a state or an operation in words; names that people chose are unchanged."""
    text = str(name)
    if _NAME.fullmatch(text):
        text = _WORDS.get(text) or text.replace("_", " ")
    return text


def with_times(text: object) -> str:
    """A sentence with its times as people write them: `2026-01-31 12:00 UTC`."""
    return _TIME.sub(r"\1 \2 UTC", str(text))


def agent_name(agent: object) -> str:
    """Return the name of an agent on pages: its id, or the label of one of Lithos's own agents."""
    return OWN_AGENTS.get(str(agent), str(agent))


def in_words(value: Any) -> str:
    """A setting as people read it: no text of Python, at any depth."""
    if value is None or value in ("", [], {}, ()):
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_inside(each)}" for name, each in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(map(_inside, value))
    return str(value)


def _inside(value: Any) -> str:
    """The same within another one: in brackets where it has parts."""
    has_parts = isinstance(value, Mapping | list | tuple | set | frozenset) and len(value) > 1
    return f"({in_words(value)})" if has_parts else in_words(value)


FILTERS: Final[Mapping[str, Any]] = {
    "worded": worded,
    "with_times": with_times,
    "agent_name": agent_name,
    "in_words": in_words,
}
