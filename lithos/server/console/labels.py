"""Readable names for kinds, states, operations and types, and for the agent names that Lithos uses itself."""

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
    SESSIONS_AGENT,
    TIMER_AGENT,
    TRIM_AGENT,
    UNDO_AGENT,
    WATCHER_AGENT,
)

#: Readable names for identifiers. Other identifiers only get spaces for underscores.
_WORDS: Final[Mapping[str, str]] = {
    # warnings about notes and operations of versions
    "conflict_markers": "Git conflict markers", "duplicated": "second file",
    "outside": "changed by another program",
    "copy": "conflict copy kept", "renamed": "moved", "body": "text", "extra": "other keys",
    # edge types and outcomes of contradictions
    "derived_from_ids": "derived from", "accepted_dual": "both are right", "refuted": "no contradiction",
    "is_example_of": "is an example of", "analogy_to": "is like", "contradicts": "contradicts",
    # access, gates and searches
    "agent_private": "private to its author", "needs_verify": "to be verified",
    "source_url": "source address", "access_scope": "access", "note_type": "type", "created_at": "created",
    "updated_at": "changed", "expires_at": "expires", "schema_version": "schema",
}  # fmt: skip
#: An identifier such as `conflict_markers`. People do not write names in this form.
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
#: A UTC time in the format of tool answers.
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d{1,9})?(?:Z|\+00:00)")
#: Agent names that Lithos uses for its own changes, except the name of the console's user.
OWN_AGENTS: Final[Mapping[str, str]] = {
    WATCHER_AGENT: "Another program", SCAN_AGENT: "Another program", TIMER_AGENT: "A timer",
    ENRICH_AGENT: "Enrichment", UNDO_AGENT: "Undo", MERGE_AGENT: "Merging of copies",
    CLI_AGENT: "Command line", IMPORT_AGENT: "Import", EVALUATE_AGENT: "Evaluation",
    MIGRATION_AGENT: "An older version", TRIM_AGENT: "Trimming of memory",
    SESSIONS_AGENT: "Merging of sessions",
}  # fmt: skip


def worded(name: object) -> str:
    """Return the readable name of a kind, state or operation.

    Names that people chose are returned unchanged.
    """
    text = str(name)
    if _NAME.fullmatch(text):
        text = _WORDS.get(text) or text.replace("_", " ")
    return text


def with_times(text: object) -> str:
    """Return a sentence in which each time has a readable form: `2026-01-31 12:00 UTC`."""
    return _TIME.sub(r"\1 \2 UTC", str(text))


def agent_name(agent: object) -> str:
    """Return the name of an agent on pages: its id, or a label if Lithos itself uses the id."""
    return OWN_AGENTS.get(str(agent), str(agent))


def in_words(value: Any) -> str:
    """Return a setting's value in readable form. Nested values have no Python syntax either."""
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
    """Return a nested value in readable form. Several parts are enclosed in brackets."""
    has_parts = isinstance(value, Mapping | list | tuple | set | frozenset) and len(value) > 1
    return f"({in_words(value)})" if has_parts else in_words(value)


FILTERS: Final[Mapping[str, Any]] = {
    "worded": worded,
    "with_times": with_times,
    "agent_name": agent_name,
    "in_words": in_words,
}
