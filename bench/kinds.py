"""Collections of notes unlike documentation: conversations, one-line facts, code, and Markdown folders.

`read_kinds` makes judged collections from five sources. 1. Turns and sessions of generated dialogues. 2. The
answering turns of these dialogues, one line each. 3. Sentences of judged collections, with every second
content word as the question. 4. Functions of the standard library without their docstrings. The first line of
the docstring is the question. 5. Notes of a vault. The questions are names of several words, and every second
content word of the longest paragraph.
"""

from __future__ import annotations

import ast
import re
import sysconfig
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.conversations import LAYOUTS, as_collection
from bench.dialogues import Conversation, generate_conversations
from bench.judged import Chunk, Collection, JudgedQuery
from lithos.text.words.analysis import FUNCTION_WORDS, fold, words

#: Maximum facts or functions per collection, minimum and maximum words of a fact, and maximum words of a
#: question.
MOST: Final = 1_200
FACT_WORDS, LEAST_ASKED, MOST_ASKED = range(8, 31), 3, 12
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")


def read_kinds(collections: Sequence[Collection], vault: Path | None = None) -> Iterator[Collection]:
    """Yield these collections. Facts are sentences from `collections`, and `vault` is a Markdown folder."""
    dialogues = generate_conversations()
    yield from (as_collection(dialogues, layout) for layout in LAYOUTS)
    yield told(dialogues)
    yield from map(facts_of, collections)
    yield functions()
    if vault is not None:
        yield notes_of(vault)


def told(dialogues: Sequence[Conversation]) -> Collection:
    """Return a collection with a one-line note for each turn that answers a question."""
    turns = as_collection(dialogues, "turns")
    speakers = {turn.id: turn.speaker for dialogue in dialogues for turn in dialogue.turns}
    needed = {doc for query in turns.queries for doc in query.grades}
    known = (chunk for chunk in turns.chunks if chunk.doc in needed)
    chunks = tuple(Chunk(each.id, each.doc, f"{speakers[each.doc]}: {each.text}") for each in known)
    return Collection("facts-dialogues", chunks, turns.queries)


def facts_of(collection: Collection) -> Collection:
    """Return a collection with notes of one sentence, from many documents."""
    sentences: dict[str, str] = {}
    for chunk in collection.chunks:
        for sentence in _SENTENCE.split(" ".join(chunk.text.split())):
            if chunk.doc not in sentences or len(sentences) < MOST // 2:
                key = chunk.doc if chunk.doc not in sentences else chunk.id
                if len(sentence.split()) in FACT_WORDS and half_of(sentence):
                    sentences[key] = sentence
                    break
    chunks = [Chunk(f"fact:{key}", key, text) for key, text in sentences.items()][:MOST]
    return _asked(f"facts-{collection.name}", chunks, [(half_of(chunk.text), chunk.doc) for chunk in chunks])


def functions() -> Collection:
    """Return a collection of many functions of the standard library, one note each."""
    chunks, asked, seen = [], [], set[str]()
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        source = path.read_text(encoding="utf-8", errors="replace")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and (docstring := ast.get_docstring(node)):
                first = docstring.splitlines()[0]
                node.body = node.body[1:]
                if len(first.split()) >= LEAST_ASKED and node.body and first not in seen:
                    seen.add(first)
                    key = f"{path.stem}.{node.name}:{node.lineno}"
                    text = f"```python\n{ast.unparse(node)}\n```"
                    chunks.append(Chunk(key, key, text, f"{path.stem}.{node.name}"))
                    asked.append((first, key))
    step = max(1, len(chunks) // MOST)
    return _asked("code", chunks[::step], asked[::step])


def notes_of(folder: Path) -> Collection:
    """Return a collection from a Markdown folder.

    Notes are named after their files or their first headings.
    """
    chunks, asked = [], []
    for path in sorted(folder.rglob("*.md")):
        where = path.relative_to(folder).as_posix()
        text = re.sub(r"\A---\n.*?\n---\n", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        heading = re.search(r"^# (.+)$", text, re.MULTILINE)
        title = heading[1].strip() if heading else path.stem
        chunks.append(Chunk(where, where, text, title, where))
        longest = half_of(max(text.split("\n\n"), key=len))
        names = [title] * (len(content_words(title)) > 1) + [longest] * bool(longest)
        asked += [(name, where) for name in names]
    times = Counter(question for question, _ in asked)
    return _asked("vault", chunks, [each for each in asked if times[each[0]] == 1])


def content_words(text: str) -> list[str]:
    """Return the case-folded content words of a text. If it has only function words, return all words."""
    everything = [word for _, word in words(fold(text))]
    return [word for word in everything if word not in FUNCTION_WORDS] or everything


def half_of(text: str) -> str:
    """Return every second content word. If too few words remain for a question, return ""."""
    asked = content_words(text)[::2][:MOST_ASKED]
    return " ".join(asked) if len(asked) >= LEAST_ASKED else ""


def _asked(name: str, chunks: Sequence[Chunk], asked: Sequence[tuple[str, str]]) -> Collection:
    queries = tuple(
        JudgedQuery(f"{name}:{number}", text, "", {doc: 1}) for number, (text, doc) in enumerate(asked)
    )
    return Collection(name, tuple(chunks), queries)
