"""Simulated use of a vault: agents that ask, are shown notes, and say which of them helped.

Half of the documents are asked about. Some of the queries of a document are asked (`Study.asked`), the others
wait as related ones; the queries of documents that nobody asked about are unrelated. Where queries have many
documents each (classic collections) half of the queries are asked, and others are related when they share
a document with one of them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from bench.judged import JudgedQuery
from bench.rankings import called
from bench.rephrasing import rephrase
from lithos.app import Server

#: Notes that an agent asks for.
SHOWN = 10
#: Probability that an agent cites a relevant note that it was shown.
CITING = 0.7
#: Who asks; one agent is enough, memory is shared.
AGENT = "bench-agent"


@frozen
class Study:
    """Which queries are asked and which only measured."""

    asked: tuple[JudgedQuery, ...]
    again: tuple[JudgedQuery, ...]
    related: tuple[JudgedQuery, ...]
    unrelated: tuple[JudgedQuery, ...]

    def groups(self) -> dict[str, tuple[JudgedQuery, ...]]:
        """All groups that have a query, by name."""
        named = {
            "same": self.asked,
            "again": self.again,
            "related": self.related,
            "unrelated": self.unrelated,
        }
        return {name: queries for name, queries in named.items() if queries}


def plan_study(queries: Sequence[JudgedQuery], seed: int = 7) -> Study:
    """Divide queries into those asked, their repetitions in other words, related and unrelated ones."""
    rng = random.Random(f"study:{seed}")
    several = sum(len(query.grades) for query in queries) > 2 * len(queries)
    asked = _half_of_queries(queries, rng) if several else _half_of_documents(queries, rng)
    visited = {doc for query in queries if query.id in asked for doc in query.grades}
    rest = [query for query in queries if query.id not in asked]
    chosen = tuple(query for query in queries if query.id in asked)
    return Study(
        asked=chosen,
        again=tuple(ask_again(query, seed) for query in chosen),
        related=tuple(query for query in rest if visited & query.grades.keys()),
        unrelated=tuple(query for query in rest if not visited & query.grades.keys()),
    )


def ask_again(query: JudgedQuery, seed: int = 7) -> JudgedQuery:
    """The same need in other words, as a query of its own."""
    text = rephrase(query.text, random.Random(f"again:{seed}:{query.id}"))
    return evolve(query, id=f"{query.id}:again", text=text)


def _half_of_queries(queries: Sequence[JudgedQuery], rng: random.Random) -> set[str]:
    return set(rng.sample([query.id for query in queries], len(queries) // 2))


def _half_of_documents(queries: Sequence[JudgedQuery], rng: random.Random) -> set[str]:
    """One query in two of each visited document, the larger half where their number is odd."""
    by_document: dict[str, list[str]] = defaultdict(list)
    for query in queries:
        by_document[min(query.grades)].append(query.id)
    asked: set[str] = set()
    for doc in rng.sample(sorted(by_document), len(by_document) // 2):
        own = by_document[doc]
        asked.update(rng.sample(own, (len(own) + 1) // 2))
    return asked


@frozen
class Agents:
    """How agents cite: relevant notes with probability `citing`, a wrong one in a share of the answers."""

    citing: float = CITING
    wrong: float = 0.1

    def cite(self, shown: Sequence[str], relevant: set[str], rng: random.Random) -> list[str]:
        """The ids of the notes that an agent cites of those it was shown."""
        cited = [note for note in shown if note in relevant and rng.random() < self.citing]
        others = [note for note in shown if note not in relevant]
        if rng.random() < self.wrong and others:
            cited.append(rng.choice(others))
        return cited


#: Half of the answers cite something wrong, none anything right.
MISLED = Agents(citing=0.0, wrong=0.5)
HONEST = Agents(wrong=0.0)


async def teach_round(
    server: Server,
    documents: Mapping[str, str],
    queries: Sequence[JudgedQuery],
    agents: Agents,
    round_number: int,
    seed: int = 7,
) -> int:
    """Every query once, as a task of its own with feedback; in random order. Returns the citations made."""
    order = list(queries)
    random.Random(f"order:{seed}:{round_number}").shuffle(order)
    citations = 0
    for query in order:
        rng = random.Random(f"answer:{seed}:{round_number}:{query.id}")
        task = (await called(server, "lithos_task_create", title="Answer a question", agent=AGENT))["task_id"]
        answer = await called(
            server, "lithos_retrieve", query=query.text, limit=SHOWN, agent_id=AGENT, task_id=task
        )
        shown = [row["id"] for row in answer["results"]]
        cited = agents.cite(shown, {note for note in shown if documents[note] in query.grades}, rng)
        citations += len(cited)
        await called(
            server,
            "lithos_task_complete",
            task_id=task,
            agent=AGENT,
            cited_nodes=cited,
            misleading_nodes=[],
            receipt_id=answer["receipt_id"],
        )
    return citations


async def use_without_feedback(
    server: Server, queries: Sequence[JudgedQuery], times: int, seed: int = 7
) -> None:
    """So many retrievals of these queries, in random order, each as often as the others."""
    rng = random.Random(f"use:{seed}")
    order: list[JudgedQuery] = []
    while len(order) < times:
        order += rng.sample(list(queries), len(queries))
    for query in order[:times]:
        await called(server, "lithos_retrieve", query=query.text, limit=SHOWN, agent_id=AGENT)
