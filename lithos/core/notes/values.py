"""Normalisation of a note's owned values to what a file holds and reads back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import Any, Final

from attrs import evolve

from lithos.core.limits import SUMMARY, cut_name
from lithos.core.notes.healing import clean_confidence, clean_items, clean_sources, clean_title
from lithos.core.notes.model import OWNED_KEYS, Note
from lithos.core.notes.yaml_nodes import MAX_DEPTH, UnreadableNote

_WRITTEN_IF_SET: Final = frozenset(
    (
        "source_url",
        "derived_from_ids",
        "expires_at",
        "namespace",
        "quarantine_reason",
        "summaries",
        "entities",
        "entities_extractor",
    )
)


def normalise_note(note: Note) -> Note:
    """The note as it will read back from a file: texts trimmed, no empty items, times in UTC.

    Raises `UnreadableNote` when `extra` nests too deeply to be read back.
    """
    _refuse_deep_nesting(note.extra)
    return evolve(
        note,
        id=note.id.strip(),
        title=clean_title(note.title),
        author=cut_name(note.author),
        created_at=note.created_at.astimezone(UTC),
        updated_at=note.updated_at.astimezone(UTC),
        tags=clean_items(note.tags),
        aliases=clean_items(note.aliases),
        confidence=clean_confidence(note.confidence),
        contributors=clean_items(note.contributors),
        source=cut_name(note.source or "") or None,
        supersedes=cut_name(note.supersedes or "") or None,
        source_url=_trimmed(note.source_url),
        derived_from_ids=clean_sources(note.derived_from_ids, note.id),
        expires_at=note.expires_at and note.expires_at.astimezone(UTC),
        namespace=cut_name(note.namespace or "") or None,
        quarantine_reason=cut_name(note.quarantine_reason or "") or None,
        summaries={key: text[:SUMMARY] for key, text in note.summaries.items()} if note.summaries else None,
        entities=clean_items(note.entities),
        extra=dict(note.extra),
    )


def _refuse_deep_nesting(extra: Mapping[str, Any]) -> None:
    level: list[Any] = [extra]
    for _ in range(MAX_DEPTH + 1):
        inner = (item.values() if isinstance(item, Mapping) else item for item in level)
        level = [part for items in inner for part in items if isinstance(part, (Mapping, list, tuple))]
        if not level:
            return
    raise UnreadableNote(f"the metadata nests deeper than {MAX_DEPTH} levels; flatten it")


def _trimmed(text: str | None) -> str | None:
    return (text or "").strip() or None


def written_values(note: Note) -> dict[str, Any]:
    """Owned key to value, in writing order, of all keys that belong in the file; lists for tuples."""
    values = {key: getattr(note, key) for key in OWNED_KEYS}
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in values.items()
        if key not in _WRITTEN_IF_SET or value not in (None, (), {})
    }
