"""Notes and questions for `bench.economy` that are not in the repository: collections, a vault, LoCoMo."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import TypeAlias

from bench.judged import Chunk, Collection, JudgedQuery
from lithos.text.words.analysis import fold, words

#: Questions, with the passages that an answer to each question must show.
Cases: TypeAlias = list[tuple[JudgedQuery, list[str]]]


def of_judged(collection: Collection) -> Cases:
    """Return each query with its passage.

    The passage is the chunk of the best document with most query words.
    """
    cases: Cases = []
    for query in collection.queries:
        best = max(query.grades, key=lambda doc: (query.grades[doc], doc))
        asked = {word for _, word in words(fold(query.text))}
        texts = [chunk.text for chunk in collection.chunks if chunk.doc == best]
        cases.append((query, [max(texts, key=lambda text: len(asked & {w for _, w in words(fold(text))}))]))
    return cases


def of_vault(vault: Path, sample: int, seed: int) -> tuple[Collection, Cases]:
    """Return the notes of a vault, with their headings as questions. The answering passage is unknown."""
    files = [path for path in sorted(vault.rglob("*.md")) if "/." not in f"/{path.relative_to(vault)}"]
    texts = {str(path.relative_to(vault)): path.read_text("utf-8", errors="replace") for path in files}
    chunks = tuple(Chunk(name, name, text, Path(name).stem, name) for name, text in texts.items())
    asked = sorted({each for text in texts.values() for each in re.findall(r"(?m)^#{1,3} +(.{8,80})$", text)})
    random.Random(seed).shuffle(asked)
    queries = tuple(JudgedQuery(str(n), text, "", {}) for n, text in enumerate(asked[:sample]))
    return Collection("vault", chunks, queries), [(query, []) for query in queries]


def of_locomo(file: Path, sample: int, seed: int) -> tuple[Collection, Cases]:
    """Return LoCoMo with one note per session, and its non-adversarial questions that name their evidence."""
    chunks: list[Chunk] = []
    cases: Cases = []
    for number, each in enumerate(json.loads(file.read_text(encoding="utf-8"))):
        said, talk = dict[str, str](), each["conversation"]
        for key in (name for name in talk if re.fullmatch(r"session_\d+", name)):
            said |= {turn["dia_id"]: turn["text"] for turn in talk[key]}
            lines = "\n\n".join(f"{turn['speaker']}: {turn['text']}" for turn in talk[key])
            path, date = f"{number:02}/{key}.md", talk.get(f"{key}_date_time", "")
            chunks.append(Chunk(path, path, f"Date: {date}\n\n{lines}", f"{number:02} {key}", path))
        for place, asked in enumerate(each["qa"]):
            evidence = [said[one] for one in asked.get("evidence", ()) if one in said]
            if evidence and asked.get("category") != 5:
                cases.append((JudgedQuery(f"{number}-{place}", asked["question"], "", {}), evidence))
    random.Random(seed).shuffle(cases)
    return Collection("locomo", tuple(chunks), tuple(query for query, _ in cases[:sample])), cases[:sample]
