"""Generated prompts for the prompt hook: unrelated prompts, and related prompts that a note answers."""

from __future__ import annotations

import ast
import random
import re
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from attrs import frozen

from bench.dialogue_words import split
from bench.judged import Chunk, Collection
from bench.kinds import content_words

#: Parts of unrelated programming tasks.
LANGUAGES: Final = split("Python|TypeScript|Go|Rust|Java|C#|Kotlin|Ruby|Bash|PHP")
THINGS: Final = split(
    "parse a CSV file|reverse a linked list|flatten a nested list|merge two sorted arrays|validate an "
    "email address|read a file line by line|compute the median of a stream|find the longest palindrome "
    "in a string|draw a progress bar|convert Roman numerals|debounce a click handler|deep-clone an "
    "object|generate a random password|sort strings naturally|render a Markdown table|diff two "
    "dictionaries|resize an image|count the words in a text|walk a directory tree|format a date as a "
    "weekday|implement an LRU cache|solve sudoku with backtracking|play tic-tac-toe|memoise a "
    "recursive function|centre a div"
)
ERRORS: Final = split(
    "TypeError: 'NoneType' object is not subscriptable|IndexError: list index out of range|"
    "ReferenceError: foo is not defined|NullPointerException|cannot borrow `x` as mutable more than "
    "once|undefined is not a function|ModuleNotFoundError: No module named 'numpy'|segmentation fault "
    "(core dumped)|error TS2345: Argument of type 'string' is not assignable|EADDRINUSE: address "
    "already in use"
)
TASKS: Final = split(
    "Write a {l} function to {t}.|Write a {l} function that can {t}, with unit tests and type hints.|"
    "Refactor this {l} code so that it can {t} without recursion.|Can you show me how to {t} in {l}?|"
    "Why do I get `{e}` in my {l} program?|My {l} script to {t} fails with `{e}`. Please fix it.|"
    "Translate this function from {l} to {k}: it should {t}.|Add a --verbose flag to the script and "
    "make it {t}.|Explain the difference between {l} and {k} generics.|Add docstrings to all functions "
    "in utils and remove unused imports.|Rename the variable tmp to something better and run the "
    "linter again.|Make the failing unit test pass, but do not change the assertion.|Bump the version "
    "to 2.{n}.0 and update the changelog.|Set up a new {l} project with a linter and a formatter.|"
    "Convert the callbacks in index.js to async/await.|Use a dataclass instead of the tuple in line "
    "{n}{n}."
)
CHAT: Final = split(
    "thanks, that looks good|do the same for the other files too|now run the tests again please|What "
    "is a good recipe for {d}?|Tell me a joke about {d}.|Plan a weekend trip to {c} for two people.|"
    "How far is {c} from the sea?|Write a birthday poem for my aunt, who loves {d}.|Translate 'good "
    "morning, how are you?' into Italian.|What should I wear to a wedding in {c}?|Why is the sky blue?|"
    "Who won the world cup in 199{n}?|Suggest five names for a cat.|Summarise the plot of Hamlet in "
    "three sentences.|Is it healthy to eat {d} every day?|Commit everything with a sensible message.|"
    "How many calories does {d} have?|What's the weather like in {c} in spring?|Give me a workout plan "
    "for a sore back.|I feel tired today, cheer me up!"
)
DISHES: Final = split("lasagne|ramen|paella|goulash|pancakes|falafel|ratatouille|dumplings|risotto|tiramisu")
CITIES: Final = split("Lisbon|Kyoto|Bergen|Porto|Tbilisi|Valencia|Riga|Palermo|Bruges|Oaxaca")
#: Unrelated prompts that contain one word of a note.
WORD_FRAMES: Final = split(
    "Write a limerick about the word {w}.|What rhymes with {w}?|Rename the variable x to {w} "
    "everywhere.|How do you say {w} in Portuguese?|Create a CSS class called {w} with a red border.|"
    "Make a crossword clue for {w}.|Add an enum member {w} to the Color class and sort the members.|"
    "Draw an ASCII picture of {w} for my slides.|Is {w} a countable noun?|Print {w} ten times in a for "
    "loop."
)
#: Frames around questions, and tasks that contain one.
ASKING: Final = split(
    "{q}|{q}|{q}|{q} Please keep the answer short.|Quick question: {q}|hey, {q}|I forgot: {q}|{f} {q} "
    "{g}|{f}\n\n{q}\n\n{g}|{g}\n{f}\n{q}"
)
FILLERS: Final = split(
    "I'm back at it after lunch and want to finish this today.|We are preparing the demo for next week "
    "and a colleague has just asked me something.|Please first look at the open files and tell me what "
    "you think. Then continue where we stopped yesterday.|Don't change any code yet, I only want to "
    "understand this.|I'm writing a short summary for a new team member."
)
ENDINGS: Final = split(
    "When you know it, write a short plan with three steps and wait for my answer.|Afterwards run the "
    "linter and the tests, and fix what they report.|Answer in two sentences, then go on with the "
    "refactoring of the parser.|If you are not sure, say so. Add a comment to the code where it "
    "matters."
)
#: Questions about a name, and about a sentence that was reduced to some of its words.
NAMED: Final = split(
    "What do we know about {x}?|Tell me about {x}.|Can you explain {x} to me?|I need a summary of our "
    "notes on {x}.|What's the story with {x}?|Remind me, what is {x}?"
)
REDUCED: Final = split(
    "What did we write about {x}?|how does this work: {x}?|Is there anything on {x}?|I remember "
    "something like {x}, can you check?|{x}?|explain {x}"
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")


@frozen
class Prompt:
    """A prompt of some kind.

    `answers` has the documents that answer it. It is empty for unrelated prompts.
    """

    kind: str
    text: str
    answers: frozenset[str] = frozenset()


def unrelated(notes: Collection, count: int, seed: int) -> list[Prompt]:
    """Return prompts that no note answers. A quarter of them contains a word of a note."""
    rng = random.Random(f"unrelated {seed} {notes.name}")
    sources = _functions()
    makers = (_task, _chat, lambda rng: _paste(rng, sources), lambda rng: _word(rng, notes.chunks))
    return [makers[number % 4](rng) for number in range(count)]


def related(notes: Collection, asked: Sequence[tuple[str, str]], count: int, seed: int) -> list[Prompt]:
    """Return prompts made from notes: `asked` has questions with their documents.

    Without `asked`, the questions are made from the names of notes and from some words of a sentence.
    """
    rng = random.Random(f"related {seed} {notes.name}")
    pairs = list(asked) or list(_questions(rng, notes.chunks))
    rng.shuffle(pairs)
    pairs = (pairs * (1 + count // max(1, len(pairs))))[:count]
    return [Prompt("related", framed(rng, question), frozenset({doc})) for question, doc in pairs]


def _task(rng: random.Random) -> Prompt:
    one, other = rng.sample(LANGUAGES, 2)
    text = rng.choice(TASKS).format(
        l=one, k=other, t=rng.choice(THINGS), e=rng.choice(ERRORS), n=rng.randint(1, 9)
    )
    return Prompt("task", _padded(rng, text))


def _chat(rng: random.Random) -> Prompt:
    text = rng.choice(CHAT).format(d=rng.choice(DISHES), c=rng.choice(CITIES), n=rng.choice("048"))
    return Prompt("chat", text)


def _padded(rng: random.Random, text: str) -> str:
    return f"{rng.choice(FILLERS)} {text} {rng.choice(ENDINGS)}" if rng.random() < 0.3 else text


def _paste(rng: random.Random, sources: Sequence[str]) -> Prompt:
    source = rng.choice(sources)
    if rng.random() < 0.5:
        error, line = rng.choice(ERRORS), rng.randint(10, 400)
        trace = f'Traceback (most recent call last):\n  File "main.py", line {line}, in <module>\n    run()\n'
        frames = "".join(f'  File "lib/m{n}.py", line {line + n}, in f{n}\n    go({n})\n' for n in range(3))
        return Prompt("trace", f"{trace}{frames}{error}\n\nwhat's wrong here?")
    begin = rng.choice(("Explain this:", "Why is this slow?", "Add type hints.", "Review this code please"))
    return Prompt(
        "paste", f"{begin}\n\n```python\n{source}\n```" if rng.random() < 0.7 else f"{begin}\n{source}"
    )


def _word(rng: random.Random, chunks: Sequence[Chunk]) -> Prompt:
    words = [word for word in content_words(rng.choice(chunks).text) if len(word) > 3] or ["lorem"]
    return Prompt("word", rng.choice(WORD_FRAMES).format(w=rng.choice(words)))


def _functions() -> list[str]:
    """Return the sources of some functions of the standard library."""
    found = []
    for name in ("textwrap", "heapq", "shlex", "fractions", "calendar", "difflib", "statistics", "tokenize"):
        source = (Path(sysconfig.get_paths()["stdlib"]) / f"{name}.py").read_text(encoding="utf-8")
        found += [
            ast.unparse(node)[:1_500] for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)
        ]
    return found


def _questions(rng: random.Random, chunks: Sequence[Chunk]) -> Iterator[tuple[str, str]]:
    for chunk in chunks:
        prose = re.sub(r"```.*?```|https?://\S+|[\[\](){}#*_`|<>]", " ", chunk.text, flags=re.DOTALL)
        sentences = [
            each for each in _SENTENCE.split(" ".join(prose.split())) if 8 <= len(each.split()) <= 40
        ]
        if chunk.title != "Note" and len(content_words(chunk.title)) > 1:
            yield rng.choice(NAMED).format(x=chunk.title), chunk.doc
        for sentence in rng.sample(sentences, min(2, len(sentences))):
            kept = [word for word in content_words(sentence) if rng.random() < 0.6][:9]
            if len(kept) >= 4:
                kept[-2:] = reversed(kept[-2:])
                yield rng.choice(REDUCED).format(x=" ".join(_typo(rng, word) for word in kept)), chunk.doc


def _typo(rng: random.Random, word: str) -> str:
    if len(word) < 6 or rng.random() > 0.08:
        return word
    place = rng.randint(1, len(word) - 3)
    return word[:place] + word[place + 1] + word[place] + word[place + 2 :]


def framed(rng: random.Random, question: str) -> str:
    return rng.choice(ASKING).format(q=question, f=rng.choice(FILLERS), g=rng.choice(ENDINGS))
