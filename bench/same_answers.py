"""Whether two revisions give the same answers to many queries: rows, order, scores, snippets, strength.

`python -m bench.same_answers DATA --into FILE` asks, with the `lithos` first on the path, hybrid, full-text,
semantic and filtered searches, cache lookups and retrievals, and writes what they answered; run it by either
revision on a copy of one data directory each. `--compare FILE FILE` tells what differs: exit code 1 then.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from bench.corpus import queries
from bench.words import TOPICS
from lithos.app import running_server
from lithos.config.load import load_config

QUERIES: Final = 300
#: What tells when, under which number, or after which questions a question was asked.
_OF_THE_CALL: Final = ("receipt_id", "salience", "usage_score")
#: Queries that the corpus' own do not look like.
ODD: Final = (
    "", " ", "zzzzqqqq", "the of and", "how to", "2026-03-05", "what happened on 2026-03-05", "東京",
    "Café über naïve", "a " * 300, "running runs runner ran", "x", "C++ c# .net", "\u0301" * 40,
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.same_answers", description=__doc__)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--into", type=Path)
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--compare", type=Path, nargs=2)
    options = parser.parse_args()
    if options.compare:
        raise SystemExit(compare(*options.compare))
    if options.data is None or options.into is None:
        parser.error("either DATA and --into, or --compare")
    answers = trio.run(ask_all, options.data, options.queries)
    options.into.write_text(json.dumps(answers, ensure_ascii=False))
    print(f"{len(answers):,} answers in {options.into}")


def compare(one: Path, other: Path) -> int:
    """Print which answers differ; 1 if any does."""
    first, second = (_lasting(json.loads(file.read_text())) for file in (one, other))
    different = [asked for asked in {**first, **second} if first.get(asked) != second.get(asked)]
    for asked in different[:20]:
        print(f"{asked}\n  {first.get(asked)}\n  {second.get(asked)}"[:600])
    print(f"{len(first):,} and {len(second):,} answers, {len(different)} of them differ")
    return int(bool(different))


async def ask_all(data: Path, count: int) -> dict[str, Any]:
    """Answers by what was asked."""
    config = load_config(data_dir=data, environment={}).config
    config = attrs.evolve(
        config,
        server=attrs.evolve(config.server, watch_files=False),
        search=attrs.evolve(config.search, tier="static"),
    )
    answers: dict[str, Any] = {}
    async with running_server(config) as server:
        await server.searchable()
        for tool, arguments in _questions(count):
            answer = await server.tools.call(tool, arguments)
            answers[f"{tool} {json.dumps(arguments, ensure_ascii=False)}"] = _lasting(answer)
    return answers


def _questions(count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    rng = random.Random(19)
    topics = list(TOPICS)
    for number, query in enumerate([*queries(11, count), *ODD]):
        topic = rng.choice(topics)
        yield "lithos_search", {"query": query, "limit": 20}
        yield "lithos_search", {"query": query, "limit": 20, "mode": "semantic"}
        yield "lithos_search", {"query": query, "limit": 20, "tags": [topic]}
        if number % 3 == 0:
            yield "lithos_search", {"query": query, "limit": 20, "mode": "fulltext"}
            yield "lithos_search", {"query": query, "limit": 20, "path_prefix": f"{topic}/", "threshold": 0.1}
            yield "lithos_search", {"query": query, "limit": 50, "offset": 40}
            yield "lithos_search", {"query": query, "limit": 20, "mode": "graph"}
            yield "lithos_cache_lookup", {"query": query}
            yield "lithos_retrieve", {"query": query, "limit": 20, "tags": [topic]}
        yield "lithos_retrieve", {"query": query, "limit": 20}


def _lasting(answer: Any) -> Any:
    """The answer without what is of this call alone."""
    if isinstance(answer, Mapping):
        return {key: _lasting(value) for key, value in answer.items() if key not in _OF_THE_CALL}
    return [_lasting(each) for each in answer] if isinstance(answer, list | tuple) else answer


if __name__ == "__main__":
    main()
