"""Notes asked for by name: a vault of plugins as people keep in Obsidian, with ids, aliases and empty maps.

`python -m bench.names` writes some 290 notes about plugins (`obsidian-git`, `calendarist`, `sort-tables`; two
aliases each, a text of a few sentences that mentions others) and 40 notes of nothing but links, and asks for
each by its name, its alias, two of its words, or a description. It prints how often the note is first, its
mean reciprocal rank, how sure the first three rows say that it is, and what a cache look-up says.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import trio
from attrs import field, frozen

from bench.report import print_report
from bench.vaults import learning_config, vault_folder
from lithos.app import Server, running_server
from lithos.config.catalogue import Config
from lithos.config.sections import SearchConfig, StorageConfig
from lithos.services.notes.knowledge import CacheRequest
from lithos.services.search.search import SearchRequest

NOTES: Final = 360
MAPS: Final = 40
DEEPEST: Final = 50
_MODES: Final = ("fulltext", "semantic", "hybrid")
_THINGS: Final = """
git calendar template note task table chart graph link tag folder image audio video canvas kanban
timeline mindmap citation reference quiz flashcard habit journal weather map recipe budget finance
password sync publish export import pdf epub latex math code terminal ai translate grammar spell
outline heading bookmark search query index archive trash clock reminder project board sprint review
contact meeting invoice book movie podcast music drawing sketch diagram schema property metadata
alias emoji icon theme font
"""
_VERBS: Final = """
backup render sort embed convert preview highlight rename merge split encrypt count track filter
annotate schedule summarise format copy collapse
"""
_SUFFIXES: Final = ("er", "ify", "ist", "ian", "ly", "kit", "hub", "flow", "mate", "smith")


@frozen
class Question:
    """What is asked, in which way, and the file name of the note that is meant."""

    kind: str
    text: str
    note: str


@frozen
class Plugins:
    """The texts of notes by file name, and questions for them."""

    notes: dict[str, str] = field(factory=dict)
    questions: list[Question] = field(factory=list)

    def write(self, folder: Path) -> None:
        """As a vault of Obsidian, whose notes have their titles from their files."""
        (folder / ".obsidian").mkdir(parents=True)
        (folder / ".obsidian" / "app.json").write_text("{}")
        for name, text in self.notes.items():
            (folder / f"{name}.md").write_text(text, encoding="utf-8")


def make_plugins(seed: int = 5) -> Plugins:
    """The same for the same seed."""
    made, rng = Plugins(), random.Random(seed)
    for number in range(NOTES):
        _add_plugin(made, number, rng)
    for thing in _THINGS.split()[:MAPS]:
        made.notes[f"{thing} MOC"] = f"- [[obsidian-{thing}]]\n- [[{thing}s]]\n"
        made.questions.append(Question("map", f"{thing} moc", f"{thing} MOC"))
    return made


def _add_plugin(made: Plugins, number: int, rng: random.Random) -> None:
    thing, other = rng.sample(_THINGS.split(), 2)
    verb = rng.choice(_VERBS.split())
    coined = f"{thing.rstrip('e')}{rng.choice(_SUFFIXES)}"
    name = (f"obsidian-{thing}", coined, f"{verb}-{thing}s")[number % 3]
    if name in made.notes:
        return
    aliases = [name.replace("-", " ").title(), f"{thing.title()} {verb.title()}"]
    mentioned = [
        f"It works with the {each} plugin and can {rng.choice(_VERBS.split())} each "
        f"{rng.choice(_THINGS.split())} note."
        for each in rng.sample(_THINGS.split(), rng.randint(1, 5))
    ]
    text = f"{verb.capitalize()} your {thing} and {other} files from the editor. {' '.join(mentioned)}"
    settings = f"\n\n## Settings\n\nSet the {other} interval and the {thing} folder in the template settings."
    made.notes[name] = f"---\naliases: {json.dumps(aliases)}\n---\n\n{text}{settings * (number % 2)}\n"
    made.questions.extend(_questions(number % 3, name, aliases[1], (thing, verb, other)))


def _questions(kind: int, name: str, alias: str, about: tuple[str, str, str]) -> Iterator[Question]:
    thing, verb, other = about
    yield Question("name", name.replace("-", " "), name)
    if kind == 0:
        yield Question("alias", alias, name)
        yield Question("words", f"{thing} {verb} plugin", name)
    else:
        yield Question("description", f"how do I {verb} {thing} and {other} files", name)
    if kind == 1:
        yield Question("name and words", f"{name} settings {other}", name)


async def measure(folder: Path) -> None:
    """Ask everything and print."""
    plugins = make_plugins()
    plugins.write(folder / "knowledge")
    config = Config(
        storage=StorageConfig(data_dir=folder),
        search=SearchConfig(tier="static"),
        lcma=learning_config(),
    )
    async with running_server(config) as server:
        await server.search.search(SearchRequest(query="all", mode="semantic"))
        for kind in dict.fromkeys(question.kind for question in plugins.questions):
            asked = [question for question in plugins.questions if question.kind == kind]
            for mode in _MODES:
                await _report(server, kind, mode, asked)
            verdicts = Counter([await _look_up(server, question) for question in asked])
            print_report("names", kind=kind, mode="cache", questions=len(asked), verdicts=dict(verdicts))


async def _report(server: Server, kind: str, mode: str, asked: Sequence[Question]) -> None:
    ranks: list[int] = []
    said: Counter[str] = Counter()
    for question in asked:
        answer = await server.search.search(SearchRequest(query=question.text, mode=mode, limit=DEEPEST))
        rows = {Path(hit.entry.path).stem: hit.match or "" for hit in answer.hits}
        if question.note in rows:
            ranks.append(list(rows).index(question.note) + 1)
            said[rows[question.note]] += 1
    print_report(
        "names",
        kind=kind,
        mode=mode,
        questions=len(asked),
        first=round(100 * ranks.count(1) / len(asked), 1),
        mrr=round(100 * sum(1 / rank for rank in ranks if rank <= 10) / len(asked), 1),
        match=dict(said),
    )


async def _look_up(server: Server, question: Question) -> str:
    answer = await server.knowledge.look_up(CacheRequest(query=question.text))
    if answer.entry is None:
        return "miss"
    return "right" if Path(answer.entry.path).stem == question.note else "wrong"


def main() -> None:
    with vault_folder(None) as folder:
        trio.run(measure, folder)


if __name__ == "__main__":
    main()
