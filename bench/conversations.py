"""Judged collections from generated conversations (`bench/dialogues.py`), as memories that agents store.

The layout `turns` has one note per turn, with speaker, date and time in the title. The layout `sessions` has
one note per session.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.dialogues import Conversation, Turn
from bench.judged import Chunk, Collection, JudgedQuery

LAYOUTS = ("turns", "sessions")


def as_collection(conversations: Sequence[Conversation], layout: str) -> Collection:
    """Return the notes of a layout, and the questions with the turns or sessions that answer them."""
    chunks: list[Chunk] = []
    for conversation in conversations:
        chunks += _sessions(conversation) if layout == "sessions" else _turns(conversation)
    sessions = {turn.id: turn.session for each in conversations for turn in each.turns}
    queries = tuple(
        JudgedQuery(
            question.id,
            question.text,
            question.kind,
            {sessions[turn] if layout == "sessions" else turn: 1 for turn in question.turns},
        )
        for conversation in conversations
        for question in conversation.questions
    )
    return Collection(f"conversations-{layout}", tuple(chunks), queries)


def _turns(conversation: Conversation) -> list[Chunk]:
    return [
        Chunk(
            turn.id,
            turn.id,
            turn.text,
            f"{turn.speaker}, {turn.when:%Y-%m-%d %H:%M}",
            f"{_folder(conversation)}/{turn.when:%Y-%m-%d}/{turn.id}.md",
        )
        for turn in conversation.turns
    ]


def _sessions(conversation: Conversation) -> list[Chunk]:
    by_session: dict[str, list[Turn]] = {}
    for turn in conversation.turns:
        by_session.setdefault(turn.session, []).append(turn)
    return [
        Chunk(
            session,
            session,
            "\n\n".join(f"{turn.speaker} ({turn.when:%H:%M}): {turn.text}" for turn in turns),
            f"{' and '.join(conversation.speakers)}, {turns[0].when:%Y-%m-%d}",
            f"{_folder(conversation)}/{turns[0].when:%Y-%m-%d}.md",
        )
        for session, turns in by_session.items()
    ]


def _folder(conversation: Conversation) -> str:
    return "-and-".join(conversation.speakers).lower()
