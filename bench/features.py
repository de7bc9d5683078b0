"""What is known about the best note for a question, as numbers: the input of the decision of a cache look-up.

`features_of` is the only place that asks the server; another set of numbers, or the server's own, goes there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from bench.judged import Chunk
from bench.rankings import as_plain_words
from lithos.app.server import Server
from lithos.core.text.analysis import FUNCTION_WORDS
from lithos.core.text.chunk import chunk_text
from lithos.services.search.search import SearchRequest

#: Notes of each mode that are looked at.
LOOKED_AT: Final = 30
#: In the order of the coefficients. `cos` is the candidate's similarity, `cos1` the highest of all and `dcos`
#: its distance to the second; `share` and `cover` are the share of the question's content stems in one
#: passage and in the note; `dlex` is (best - second) / best of BM25, `dscore` the candidate's score minus the
#: next note's; `lex1` and `sem1` are 1 where it leads a leg; `lenq` is the logarithm of the number of stems.
NAMES: Final = ("cos", "cos1", "dcos", "share", "cover", "dlex", "lex1", "sem1", "dscore", "lenq")


@frozen
class Evidence:
    """The candidate (None: nothing was found) and its numbers, by the names above."""

    note: str | None
    features: Mapping[str, float]


async def features_of(server: Server, query: str, notes: Mapping[str, Chunk]) -> Evidence:
    """The first note of a hybrid search, and how it stands out; `notes` has the text of each note by id."""
    hybrid = await _search(server, "hybrid", query)
    if not hybrid:
        return Evidence(None, dict.fromkeys(NAMES, 0.0))
    lexical = await _search(server, "fulltext", as_plain_words(query))
    semantic = await _search(server, "semantic", query)
    note = hybrid[0][0]
    stems = server.state.fulltext.terms
    asked = stems(query)
    asked = asked - stems(" ".join(FUNCTION_WORDS)) or asked
    text = notes[note]
    passages = [stems(chunk.embedded) for chunk in chunk_text(text.title, text.text)]
    whole = frozenset().union(*passages)
    values = {
        "cos": dict(semantic).get(note, 0.0),
        "cos1": _score(semantic, 0),
        "dcos": _score(semantic, 0) - _score(semantic, 1),
        "share": max((len(asked & passage) for passage in passages), default=0) / max(1, len(asked)),
        "cover": len(asked & whole) / max(1, len(asked)),
        "dlex": (_score(lexical, 0) - _score(lexical, 1)) / max(_score(lexical, 0), 1e-9),
        "lex1": float(bool(lexical) and lexical[0][0] == note),
        "sem1": float(bool(semantic) and semantic[0][0] == note),
        "dscore": _score(hybrid, 0) - _score(hybrid, 1),
        "lenq": math.log(max(1, len(asked))),
    }
    return Evidence(note, values)


async def _search(server: Server, mode: str, query: str) -> list[tuple[str, float]]:
    request = SearchRequest(query=query, mode=mode, limit=LOOKED_AT, threshold=0.0)
    answer = await server.retrieval.search(request)
    if answer.failed:
        raise RuntimeError(f"{mode} answered without {answer.failed}: {answer.message}")
    return [(hit.entry.note.id, hit.score) for hit in answer.hits]


def _score(hits: Sequence[tuple[str, float]], place: int) -> float:
    return hits[place][1] if place < len(hits) else 0.0
