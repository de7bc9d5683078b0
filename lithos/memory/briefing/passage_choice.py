"""Selection of passages within a token budget. A greedy algorithm maximises a submodular function.

F(S) = sum of W_c over the concepts c in S  +  query x sum of w_t (1 - product of (1 - a_pt) over p in S)
+  kept x sum of the worths of S

Concepts are pairs of neighbouring words. W_c is the greatest worth of a passage that contains c, divided by
the number of concepts in that passage. A passage therefore counts by its worth, minus the part that was
already shown (near-duplicates count nothing). It also counts by the query terms that no shown passage covers
yet. (a_pt is the share of term t in passage p, times its worth relative to the best.) The last sum skips
passages without any new concept. Without that sum, a likely note that repeats another note's words would lose
to an unlikely note. F is monotone. Apart from that exception, F is submodular, as a sum of weighted coverage
functions and a modular function (Lin and Bilmes 2011; concepts: Gillick and Favre 2009).

A passage costs its tokens, plus the tokens of its heading line unless that line is already shown. The greedy
algorithm takes the passage with the highest gain / cost^scale as long as it fits (Lin and Bilmes 2010). It
evaluates lazily, because gains only shrink (Minoux 1978). If the best single passage is worth more than the
selection, it is taken instead, which gives the constant-factor guarantee of Khuller, Moss and Naor (1999).
Passages with a gain below `least` times the first gain are not taken, and no note gets more than its limit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from heapq import heapify, heappop, heappush

from attrs import define, field, frozen


@frozen(kw_only=True, eq=False)
class Option:
    """A passage that may be shown, with the numbers of its note and section, and its token cost.

    `worth` is the probability that the passage answers the query. `shares` is its share of each query term.
    """

    note: int
    section: int
    cost: int
    worth: float
    shares: Mapping[int, float]
    concepts: Collection[str]


@frozen(kw_only=True)
class Limits:
    """Token limits for all excerpts and for one note, and the costs of heading lines by (note, section)."""

    budget: int
    note: int
    headers: Mapping[tuple[int, int], int]
    #: Token cost of the mark between two passages of a section.
    gap: int
    #: Token cost of a note outside of the text.
    source: int = 0
    #: Exponent of the cost. The next two fields are the weight of query terms relative to the worth, and the
    #: minimum share of the first gain.
    scale: float
    query: float
    least: float
    #: Share of its worth that counts for a passage as long as part of the passage is new.
    kept: float = 0.0


@define
class _Shown:
    """The passages that are already shown, and the parts of the query that they do not cover."""

    concepts: set[str] = field(factory=set)
    sections: set[tuple[int, int]] = field(factory=set)
    spent: int = 0
    by_note: dict[int, int] = field(factory=dict)
    #: Product of (1 - a_pt) by term.
    uncovered: dict[int, float] = field(factory=dict)


class Chooser:
    """A deterministic selection of options. Of several equal options, the first one is taken."""

    def __init__(self, options: Sequence[Option], weights: Sequence[float], limits: Limits) -> None:
        """Create a chooser. `weights` are the weights of the query terms, by term number."""
        self._options = options
        self._limits = limits
        total = sum(weights) or 1.0
        best = max((each.worth for each in options), default=0.0)
        self._best = best or 1.0
        self._weights = [limits.query * best * weight / total for weight in weights]
        self._concepts: dict[str, float] = {}
        for each in options:
            part = each.worth / max(1, len(each.concepts))
            for concept in each.concepts:
                if part > self._concepts.get(concept, 0.0):
                    self._concepts[concept] = part
        nothing = _Shown()
        #: Gain of each option if no other option is selected.
        self._alone = [self._gain(number, nothing) for number in range(len(options))]

    def choose(self, limits: Limits | None = None) -> list[int]:
        """Return the numbers of the selected options, in the order of their selection.

        `limits` replace the limits of earlier calls.
        """
        self._limits = self._limits if limits is None else limits
        taken = self._take(range(len(self._options)))
        value = sum(self.gains(taken))
        nothing = _Shown()
        single = max(
            (number for number in range(len(self._options)) if self._fits(number, nothing)),
            key=lambda number: (self._alone[number], -number),
            default=None,
        )
        if single is None or self._alone[single] <= value:
            return taken
        return [single, *self._take([n for n in range(len(self._options)) if n != single], single)]

    def gains(self, chosen: Sequence[int]) -> list[float]:
        """Return the gain of each option in addition to the options before it. The sum of all gains is F."""
        shown, gains = _Shown(), list[float]()
        for number in chosen:
            gains.append(self._gain(number, shown))
            self._show(number, shown)
        return gains

    def _take(self, numbers: Sequence[int], first: int | None = None) -> list[int]:
        shown = _Shown()
        if first is not None:
            self._show(first, shown)
        by_section: dict[tuple[int, int], list[int]] = defaultdict(list)
        by_note: dict[int, list[int]] = defaultdict(list)
        for number in numbers:
            by_section[self._key(number)].append(number)
            by_note[self._options[number].note].append(number)
        gains = self._alone if first is None else [self._gain(n, shown) for n in range(len(self._options))]
        heap = [(-self._density(number, gains[number], shown), number) for number in numbers]
        heapify(heap)
        taken: list[int] = []
        done: set[int] = set()
        least: float | None = None
        while heap:
            former, number = heappop(heap)
            if number in done or not self._fits(number, shown):
                continue
            gain = self._gain(number, shown)
            density = -self._density(number, gain, shown)
            if density > former + 1e-15 and heap and density > heap[0][0]:
                heappush(heap, (density, number))  # The gain has shrunk, so another option may now be better.
                continue
            least = gain * self._limits.least if least is None else least
            if gain <= least * (1 if taken else 0):
                done.add(number)
                continue
            key = self._key(number)
            is_new, is_new_note = key not in shown.sections, key[0] not in shown.by_note
            self._show(number, shown)
            done.add(number)
            taken.append(number)
            if is_new:  # The heading and the note of neighbouring passages are already paid for.
                for other in by_note[key[0]] if is_new_note and self._limits.source else by_section[key]:
                    if other not in done:
                        gain = self._gain(other, shown)
                        heappush(heap, (-self._density(other, gain, shown), other))
        return taken

    def _key(self, number: int) -> tuple[int, int]:
        return self._options[number].note, self._options[number].section

    def _cost(self, number: int, shown: _Shown) -> int:
        key = self._key(number)
        above = self._limits.gap if key in shown.sections else self._limits.headers[key]
        source = 0 if key[0] in shown.by_note else self._limits.source
        return self._options[number].cost + above + source

    def _fits(self, number: int, shown: _Shown) -> bool:
        cost, limits = self._cost(number, shown), self._limits
        return (
            shown.spent + cost <= limits.budget
            and shown.by_note.get(self._options[number].note, 0) + cost <= limits.note
        )

    def _density(self, number: int, gain: float, shown: _Shown) -> float:
        return float(gain / max(1, self._cost(number, shown)) ** self._limits.scale)

    def _gain(self, number: int, shown: _Shown) -> float:
        option = self._options[number]
        gain = 0.0
        for concept in option.concepts:
            if concept not in shown.concepts:
                gain += self._concepts[concept]
        if gain:
            gain += self._limits.kept * option.worth
        share = option.worth / self._best
        for term, part in option.shares.items():
            gain += self._weights[term] * shown.uncovered.get(term, 1.0) * share * part
        return gain

    def _show(self, number: int, shown: _Shown) -> None:
        option, cost = self._options[number], self._cost(number, shown)
        shown.spent += cost
        shown.by_note[option.note] = shown.by_note.get(option.note, 0) + cost
        shown.sections.add(self._key(number))
        shown.concepts.update(option.concepts)
        for term, part in option.shares.items():
            left = 1 - option.worth / self._best * part
            shown.uncovered[term] = shown.uncovered.get(term, 1.0) * left
