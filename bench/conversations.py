"""How well memories of conversations are found: 5,000 short turns, 1,000 questions with known answers.

`python -m bench.conversations --data DIR >> RESULTS` asks every question in every mode; each result is a JSON
line, and `python -m bench.quality_tables RESULTS` makes tables of them. The conversations are generated
(`bench/dialogues.py`). Layouts: `turns` has one note per turn, as an agent would keep them, titled with
speaker, date and time; `sessions` one per session. The others are experiments: `bare` turns without a title,
`spelled` with the date in words, `spoken` with the speaker in the text too, `prompted` with the turn before
in front, `around` with the turns before and after. `--words content` asks without function words.

Recall at 5 and 10 and MRR at 10 (times 100) of the turns that are needed, and of their sessions.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import trio
from attrs import evolve, frozen

from bench.dialogues import Conversation, Turn, generate_conversations
from bench.judged import TITLE, Chunk, Collection, JudgedQuery
from bench.measures import mean
from bench.quality import by_kind
from bench.rankings import MODES, NOTES, ask_all, ranker
from bench.rephrasing import content_words
from bench.report import print_report
from bench.vaults import Vaults, vault_folder

LAYOUTS = ("turns", "sessions", "bare", "spelled", "spoken", "prompted", "around")
DEPTHS = (5, 10)


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.conversations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, help="folder that keeps notes and indexes between runs")
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=LAYOUTS[:2])
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--tier", choices=("static", "accurate"), default="static", help="embeddings")
    parser.add_argument("--words", choices=("all", "content"), default="all", help="of the questions")
    parser.add_argument("--sample", type=int, metavar="N", help="only N questions")
    parser.add_argument("--seed", type=int, default=7, help="of the generator")
    return parser.parse_args(arguments)


def main() -> None:
    options = parse_arguments()
    conversations = generate_conversations(seed=options.seed)
    with vault_folder(options.data) as folder:
        for layout in options.layouts:
            collection = as_collection(conversations, layout).sample(options.sample)
            if options.words == "content":
                collection = evolve(
                    collection, queries=tuple(map(without_function_words, collection.queries))
                )
            trio.run(_measure, collection, conversations, layout, Vaults(folder, options.tier), options)


def as_collection(conversations: Sequence[Conversation], layout: str) -> Collection:
    """The notes of a layout, and the questions with the turns (or sessions) that answer them."""
    chunks: list[Chunk] = []
    for conversation in conversations:
        chunks += _sessions(conversation) if layout == "sessions" else _turns(conversation, layout)
    sessions = session_of(conversations)
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


def session_of(conversations: Sequence[Conversation]) -> dict[str, str]:
    """The session of each turn."""
    return {turn.id: turn.session for conversation in conversations for turn in conversation.turns}


def without_function_words(query: JudgedQuery) -> JudgedQuery:
    return evolve(query, text=" ".join(content_words(query.text)))


def _turns(conversation: Conversation, layout: str) -> list[Chunk]:
    turns = conversation.turns
    return [
        Chunk(
            turn.id,
            turn.id,
            _text(turns, place, layout),
            _title(turn, layout),
            f"{_folder(conversation)}/{turn.when:%Y-%m-%d}/{turn.id}.md",
        )
        for place, turn in enumerate(turns)
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


def _title(turn: Turn, layout: str) -> str:
    if layout in ("bare", "spoken"):
        return TITLE
    when = (
        f"{turn.when.day} {turn.when:%B %Y, %H:%M}" if layout == "spelled" else f"{turn.when:%Y-%m-%d %H:%M}"
    )
    return f"{turn.speaker}, {when}"


def _text(turns: Sequence[Turn], place: int, layout: str) -> str:
    """What a note says; neighbours only from the same session."""
    turn = turns[place]
    if layout == "spoken":
        return f"{turn.speaker}: {turn.text}"
    reach = {"prompted": (1, 0), "around": (1, 1)}.get(layout, (0, 0))
    near = [
        other
        for other in turns[max(0, place - reach[0]) : place + reach[1] + 1]
        if other.session == turn.session
    ]
    return "\n\n".join(other.text if other is turn else f"{other.speaker}: {other.text}" for other in near)


@frozen
class Found:
    """How well one question's turns (or sessions) were found."""

    recall_5: float
    recall_10: float
    mrr: float

    @classmethod
    def of(cls, ranking: Sequence[str], wanted: frozenset[str]) -> Found:
        """Score a ranking without repetition."""
        shares = [len(wanted.intersection(ranking[:depth])) / len(wanted) for depth in DEPTHS]
        places = [place for place, item in enumerate(ranking[: DEPTHS[-1]], start=1) if item in wanted]
        return cls(*shares, 1 / places[0] if places else 0.0)


async def _measure(
    collection: Collection,
    conversations: Sequence[Conversation],
    layout: str,
    vaults: Vaults,
    options: argparse.Namespace,
) -> None:
    documents, sessions = collection.documents(), session_of(conversations)
    async with vaults.serving(collection) as server:
        for mode in options.modes:
            notes = await ask_all(ranker(server, mode, NOTES), collection.queries)
            found = {query: [documents[note] for note in ids] for query, ids in notes.items()}
            scores = score(found, collection.queries, sessions)
            for kind, queries in by_kind(collection.queries):
                print_report(
                    "conversations",
                    layout=layout,
                    tier=vaults.tier,
                    words=options.words,
                    mode=mode,
                    kind=kind,
                    queries=len(queries),
                    **{level: _means([of[query.id] for query in queries]) for level, of in scores.items()},
                )


def score(
    found: Mapping[str, Sequence[str]], queries: Sequence[JudgedQuery], sessions: Mapping[str, str]
) -> dict[str, dict[str, Found]]:
    """Scores by level and question; where notes are sessions there is only that level."""
    levels: dict[str, dict[str, Found]] = {}
    for query in queries:
        wanted, ranking = frozenset(query.grades), found[query.id]
        if wanted & sessions.keys():
            levels.setdefault("turn", {})[query.id] = Found.of(ranking, wanted)
        by_session = list(dict.fromkeys(sessions.get(item, item) for item in ranking))
        whole = frozenset(sessions.get(item, item) for item in wanted)
        levels.setdefault("session", {})[query.id] = Found.of(by_session, whole)
    return levels


def _means(scores: Sequence[Found]) -> dict[str, float]:
    return {
        "recall_5": mean([one.recall_5 for one in scores]),
        "recall_10": mean([one.recall_10 for one in scores]),
        "mrr": mean([one.mrr for one in scores]),
    }


if __name__ == "__main__":
    main()
