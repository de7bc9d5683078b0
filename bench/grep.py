"""The reference for `bench.economy`: an agent that has only `grep`, `sed` and the files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from bench.judged import Chunk
from lithos.text.words.analysis import FUNCTION_WORDS, fold, words

#: Number of lines to show per file, and number of context lines before and after each.
LINES, AROUND = 3, 2


@frozen
class Grep:
    """A file search like that of an agent with `grep`.

    The search returns the best lines of each file with context.
    """

    files: Sequence[tuple[str, Sequence[str], Sequence[frozenset[str]]]]
    frequency: Mapping[str, int]

    @classmethod
    def over(cls, chunks: Iterable[Chunk]) -> Grep:
        """Return a search over the notes as files. A line of a file is at most one paragraph."""
        files = []
        for chunk in chunks:
            lines = [f"# {chunk.title}", *chunk.text.splitlines()]
            files.append((chunk.path or chunk.note_id, lines, [_words(line) for line in lines]))
        frequency = Counter(word for _, _, each in files for word in frozenset[str]().union(*each))
        return cls(files, frequency)

    def find(self, query: str, limit: int) -> str:
        """Return the files with the most important words.

        Each has three lines, and the result at most `limit` characters.
        """
        wanted = {word: math.log(1 + len(self.files) / self.frequency[word]) for word in _words(query)
                  if word in self.frequency}  # fmt: skip
        ranked: list[tuple[float, int, list[int]]] = []
        for number, (_, _, each) in enumerate(self.files):
            weights = [sum(wanted[word] for word in words & wanted.keys()) for words in each]
            best = sorted(range(len(weights)), key=lambda line: (-weights[line], line))[:LINES]
            best = [line for line in best if weights[line] > 0]
            if best:
                ranked.append((-sum(weights[line] for line in best), number, best))
        shown: list[str] = []
        left = limit
        for _, number, best in sorted(ranked):
            path, lines, _ = self.files[number]
            around = sorted({n for line in best for n in range(line - AROUND, line + AROUND + 1)})
            part = [path, *(f"{n + 1}: {lines[n]}" for n in around if 0 <= n < len(lines))]
            text = "\n".join(part)[:left]
            shown.append(text)
            left -= len(text) + 1
            if left <= 0:
                break
        return "\n".join(shown)


def _words(text: str) -> frozenset[str]:
    return frozenset(word for _, word in words(fold(text)) if word not in FUNCTION_WORDS)
