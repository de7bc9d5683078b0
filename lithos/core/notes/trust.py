"""Warnings about a note: it, or what it rests on, should not be trusted as it stands.

Specified in docs/spec/context.md §2.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

WarningKind: TypeAlias = Literal[
    "quarantined", "superseded", "suspect", "expired", "contradicted", "duplicated"
]


@frozen
class NoteWarning:
    """One warning about a note.

    `id` and `title` name the note that is the cause: the note itself (`quarantined`, `expired`, and
    `duplicated`, when other files have its id, which `reason` names), its
    successor (`superseded`), the nearest note of its lineage that is quarantined or superseded (`suspect`),
    or the other end of the contradiction (`contradicted`). `distance` counts the steps to it, 0 for the note
    itself.
    """

    kind: WarningKind
    id: str
    title: str
    reason: str
    distance: int
