"""The text of a briefing: excerpts chosen within a token budget, and the parts around the excerpts.

Specified in docs/spec/context.md §1.

This module is pure: the same material, budget and token counter give the same text. The parts around the
excerpts take at most their share of the budget, and the excerpts get the rest. The whole text is counted
last. If it is too long, the least valuable part is dropped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from attrs import evolve, field, frozen

from lithos.memory.briefing.material import LEFT_OUT_SHARE, NOTES_HEAD, Material, around_notes
from lithos.memory.briefing.parts import (
    GAP,
    AboutNote,
    LeftOut,
    header,
    left_out_text,
    render_spans,
    short_header,
)
from lithos.memory.briefing.passage_choice import Chooser, Limits, Option
from lithos.memory.briefing.passages import Passage, SourceNote, WeightedPassage, Weights, weigh_passages
from lithos.text.excerpt_bounds import expects_more, first_block, tidy_edge
from lithos.text.markdown import code_fences
from lithos.text.words.analysis import fold, words
from lithos.text.words.tokens import Count, fitting_length

#: Minimum and maximum budget, in tokens.
LEAST_BUDGET: Final = 200
MOST_BUDGET: Final = 20_000
#: Maximum share of the budget for one note if there are other notes. The alternative limit is the budget
#: minus a fixed number of tokens. The larger limit applies.
NOTE_SHARE: Final = 0.5
FOR_OTHERS: Final = 1_500
#: Minimum number of tokens that the list of omitted notes needs.
LEFT_OUT_LEAST: Final = 14
#: Number of most likely passages to consider per thousand tokens of budget.
OPTIONS: Final = 40
LEAST_OPTIONS: Final = 60
#: Maximum number of passes that fill the unused budget with further passages.
FILLINGS: Final = 2
LEAST_LEFT: Final = 12
#: Maximum share of the budget for one note if the question asks for a complete list.
SHARE_OF_ALL: Final = 0.15
#: Maximum number of reply blocks that are added to a passage ending with a question.
REPLIES: Final = 2
#: Minimum probability, relative to the best passage, of a passage that is widened within its section.
WIDENED: Final = 0.3
#: Maximum number of omitted notes that are named.
MOST_LEFT_OUT: Final = 20


@frozen(kw_only=True)
class Item:
    """One excerpt of a briefing.

    `score` is the probability of the excerpt's best passage, relative to the best passage of all.
    """

    id: str
    version: int
    section: str
    title: str
    path: str
    tokens: int
    score: float
    reason: str
    #: Project of a note that is not of the agent's project, or "".
    project: str = ""


@frozen(kw_only=True)
class Briefing:
    """Briefing text with its token count, its excerpts in order, and the candidates that were left out."""

    text: str
    tokens: int
    items: Sequence[Item]
    dropped: Sequence[LeftOut]
    #: Warnings about the notes that were found.
    warnings: Sequence[AboutNote]


@frozen(kw_only=True)
class Style:
    """The style of a briefing.

    A compact briefing has short headings with the source number and the note's own date, and no list of
    omitted notes. If a passage ends with a question, the reply is included. `per_source` is the token cost of
    a source outside the text.
    """

    is_compact: bool = False
    per_source: int = 0
    #: If True, the question asks for a complete list. Short passages from many notes are then chosen.
    wants_all: bool = False


WHOLE: Final = Style()


@frozen(kw_only=True, eq=False)
class _Excerpt:
    """An excerpt, which consists of passages from one section of a source."""

    source: int
    section: int
    places: tuple[int, ...]
    text: str
    head: str
    worth: float
    terms: tuple[str, ...] = ()
    nearness: float = 0.0
    is_widened: bool = False

    def block(self, number: int | None = None) -> str:
        """Return the excerpt below its heading.

        In a compact briefing, the heading contains the source number.
        """
        return f"{self.head if number is None else f'### [{number}] {self.head}'}\n{self.text}"


@frozen(kw_only=True)
class _Plan:
    """The excerpts in the order in which they were chosen, and the number of unused tokens."""

    excerpts: Sequence[_Excerpt] = ()
    #: Numbers of the sources that have a passage related to the query.
    relevant: frozenset[int] = field(factory=frozenset)
    left: int = 0
    #: If True, a larger budget would show more passages.
    is_short: bool = False
    #: Token cost of the smallest passage that was considered, by source.
    smallest: Mapping[int, int] = field(factory=dict)


def compose(
    material: Material,
    budget: int,
    count: Count,
    weights: Weights = Weights(),  # noqa: B008 - frozen
    style: Style = WHOLE,
) -> Briefing:
    """Return the best briefing that has at most `budget` tokens.

    `count` counts tokens. The source costs in `style` are part of the budget.
    """
    around = around_notes(material, budget, count)
    material = around.unrepeated(material)
    reserve = 0
    if not style.is_compact and (material.sources or material.withheld):
        reserve = max(LEFT_OUT_LEAST, int(budget * LEFT_OUT_SHARE))
    room = budget - reserve - sum(count(part) + 1 for part in around.texts) - count(NOTES_HEAD) - 1
    choice = _Choice(material, budget, room, count, weights, style)

    def write(plan: _Plan, excerpts: Sequence[_Excerpt]) -> tuple[str, int, list[LeftOut]]:
        dropped = _dropped(material, plan, excerpts)
        listed = _list_left_out(dropped, reserve, count)
        ordered = _in_order(excerpts)
        blocks = _numbered(ordered) if style.is_compact else [each.block() for each in ordered]
        text = around.assemble(blocks, listed)
        sources = len({each.source for each in excerpts}) * style.per_source
        return text, count(text) + sources, dropped

    plan = choice.within(room)
    excerpts = list(plan.excerpts)
    text, tokens, dropped = write(plan, excerpts)
    for _ in range(FILLINGS):
        # The parts were counted one by one, but the whole text has fewer tokens than their sum.
        unused = budget - tokens - plan.left
        if not plan.is_short or unused < LEAST_LEFT:
            break
        room += unused
        fuller = choice.within(room)
        written = write(fuller, fuller.excerpts)
        if not tokens < written[1] <= budget:
            break
        plan, excerpts, (text, tokens, dropped) = fuller, list(fuller.excerpts), written
    while tokens > budget:
        # The whole text has more tokens than the sum of its parts. No known tokenizer causes this.
        reserve, around = 0, around.without_activity()
        if excerpts:
            excerpts.pop()
        else:
            around = around.shorter()
        text, tokens, dropped = write(plan, excerpts)
    best = max((each.worth for each in excerpts), default=0.0) or 1.0
    return Briefing(
        text=text,
        tokens=tokens,
        items=[_item(material, each, best, count) for each in _in_order(excerpts)],
        dropped=dropped[:MOST_LEFT_OUT],
        warnings=material.warnings,
    )


def _numbered(ordered: Sequence[_Excerpt]) -> list[str]:
    """Return the excerpts below headings with source numbers, starting at 1 and in text order."""
    numbers: dict[int, int] = {}
    return [each.block(numbers.setdefault(each.source, len(numbers) + 1)) for each in ordered]


def _in_order(excerpts: Sequence[_Excerpt]) -> list[_Excerpt]:
    """Return the notes ordered by their best excerpt. The excerpts of each note are in text order."""
    best: dict[int, float] = defaultdict(float)
    for each in excerpts:
        best[each.source] = max(best[each.source], each.worth)
    return sorted(excerpts, key=lambda each: (-best[each.source], each.source, each.places[0]))


def _item(material: Material, excerpt: _Excerpt, best: float, count: Count) -> Item:
    source = material.sources[excerpt.source]
    return Item(
        id=source.id,
        version=source.version,
        section=source.split.sections[excerpt.section],
        title=source.title,
        path=source.path,
        tokens=count(excerpt.block()),
        score=round(excerpt.worth / best, 4),
        reason=_reason(source, excerpt, has_query=material.has_query),
        project=source.project,
    )


def _reason(source: SourceNote, excerpt: _Excerpt, *, has_query: bool) -> str:
    parts = list(source.reasons[:2])
    if excerpt.terms:
        parts.append(f"has of the query: {', '.join(excerpt.terms[:6])}")
    if excerpt.nearness > 0 and has_query:
        parts.append(f"nearness {excerpt.nearness:.2f}")
    if excerpt.is_widened:
        parts.append("widened within its section")
    return "; ".join(parts)


# -- choosing -------------------------------------------------------------------------------------


class _Choice:
    """Plans for several budgets. Each passage cost is counted only once."""

    def __init__(
        self, material: Material, budget: int, room: int, count: Count, weights: Weights, style: Style
    ) -> None:
        """Prepare the plans. `room` is the minimum number of tokens that will be available."""
        weighed = (
            weigh_passages(material.sources, material.terms, weights, budget) if material.sources else []
        )
        most = max(LEAST_OPTIONS, OPTIONS * budget // 1_000)
        kept = sorted(weighed, key=lambda each: (-each.worth, each.source, each.place))[:most]
        self._relevant = frozenset(each.source for each in weighed)
        has_others = len({each.source for each in kept}) > 1
        self._share = max(int(budget * NOTE_SHARE), budget - FOR_OTHERS) if has_others else None
        if has_others and style.wants_all:
            self._share = int(budget * SHARE_OF_ALL)
        self._drawing = _Drawing(material, count, style)
        self._cut: list[WeightedPassage] = []
        self._options: list[Option] = []
        for each in kept if room > 0 else ():
            fitted = self._drawing.fit(self._drawing.answered(each), self._cap(room))
            if fitted is not None:
                self._cut.append(fitted)
                self._options.append(self._drawing.option(fitted))
        self._smallest: dict[int, int] = {}
        for option in self._options:
            cost = option.cost + self._drawing.headers[option.note, option.section]
            self._smallest[option.note] = min(cost, self._smallest.get(option.note, cost))

        self._limits = Limits(
            budget=room,
            note=self._cap(room),
            headers=self._drawing.headers,
            gap=self._drawing.gap,
            source=style.per_source,
            scale=weights.scale,
            query=weights.query,
            kept=weights.kept,
            least=weights.least,
        )
        terms = [term.weight for term in material.terms.terms]
        self._chooser = Chooser(self._options, terms, self._limits)

    def _cap(self, room: int) -> int:
        return room if self._share is None else min(room, self._share)

    def within(self, room: int) -> _Plan:
        """Return the best plan for at most `room` tokens."""
        if not self._options:
            return _Plan(relevant=self._relevant)
        drawing, cap = self._drawing, self._cap(room)
        chosen = self._chooser.choose(evolve(self._limits, budget=room, note=cap))
        excerpts, spent = drawing.draw([self._cut[number] for number in chosen], room, cap)
        return _Plan(
            excerpts=excerpts,
            relevant=self._relevant,
            left=room - spent,
            is_short=len(chosen) < len(self._options) or any(each.is_widened for each in excerpts),
            smallest=self._smallest,
        )


class _Drawing:
    """The costs and texts of passages. Each passage is rendered and counted once."""

    def __init__(self, material: Material, count: Count, style: Style) -> None:
        self._sources = material.sources
        self._style = style
        self._words = [term.word for term in material.terms.terms]
        self._count = count
        self.gap = count(GAP)
        self._fences: dict[int, list[tuple[int, int]]] = {}
        self._costs: dict[tuple[int, int, int], int] = {}
        self._heads: dict[tuple[int, int], str] = {}
        self.headers: dict[tuple[int, int], int] = {}

    def fit(self, weighed: WeightedPassage, cap: int) -> WeightedPassage | None:
        """Return the passage. If it exceeds the limit for one note, it is shortened.

        Return None if even a shortened passage does not fit.
        """
        head = self._header(weighed.source, weighed.passage.section)
        if head + self._cost(weighed.source, weighed.passage) <= cap:
            return weighed
        start, content = weighed.passage.start, self._sources[weighed.source].split.content
        length = fitting_length(content[start : weighed.passage.end], cap - head - 8, self._count)
        passage = evolve(weighed.passage, end=tidy_edge(content, start + length, start))
        if not length or head + self._cost(weighed.source, passage) > cap:
            return None
        return evolve(weighed, passage=passage)

    def answered(self, weighed: WeightedPassage) -> WeightedPassage:
        """Return the passage in the form that a compact briefing shows.

        If the passage ends with a question, the reply is included.
        """
        if not self._style.is_compact:
            return weighed
        split, passage = self._sources[weighed.source].split, weighed.passage
        end = passage.end
        for place in range(weighed.place + 1, min(weighed.place + 1 + REPLIES, len(split.passages))):
            following = split.passages[place]
            if following.section != passage.section or not expects_more(split.content[passage.start : end]):
                break
            end = first_block(split.content, following.start, following.end)
        return weighed if end == passage.end else evolve(weighed, passage=evolve(passage, end=end))

    def option(self, weighed: WeightedPassage) -> Option:
        """Return the data about a passage that the selection needs."""
        text = self._sources[weighed.source].split.text_of(weighed.passage)
        return Option(
            note=weighed.source,
            section=weighed.passage.section,
            cost=self._cost(weighed.source, weighed.passage),
            worth=weighed.worth,
            shares=weighed.shares,
            concepts=_concepts(text),
        )

    def draw(self, chosen: Sequence[WeightedPassage], room: int, cap: int) -> tuple[list[_Excerpt], int]:
        """Return the excerpts and their token costs.

        The most likely passages are widened within their sections as long as they fit.
        """
        places: dict[tuple[int, int], dict[int, Passage]] = defaultdict(dict)
        worth: dict[tuple[int, int], list[WeightedPassage]] = defaultdict(list)
        spent, by_note = 0, defaultdict[int, int](int)
        for each in chosen:
            key = (each.source, each.passage.section)
            cost = self._cost(each.source, each.passage) + (self.gap if key in places else self.headers[key])
            cost += 0 if each.source in by_note else self._style.per_source
            spent, by_note[each.source] = spent + cost, by_note[each.source] + cost
            places[key][each.place] = each.passage
            worth[key].append(each)
        best = max((each.worth for each in chosen), default=0.0)
        widened: set[tuple[int, int]] = set()
        for key, some in worth.items():
            if self._style.wants_all or max(each.worth for each in some) < WIDENED * best:
                continue
            for place in self._beside(key, places[key]):
                passage = self._sources[key[0]].split.passages[place]
                cost = self._cost(key[0], passage) + self.gap
                if spent + cost > room or by_note[key[0]] + cost > cap:
                    break
                places[key][place] = passage
                widened.add(key)
                spent, by_note[key[0]] = spent + cost, by_note[key[0]] + cost
        return [self._excerpt(key, places[key], worth[key], key in widened) for key in worth], spent

    def _beside(self, key: tuple[int, int], have: dict[int, Passage]) -> list[int]:
        """Return the other passages of a section. The passages nearest to the shown passages come first."""
        passages = self._sources[key[0]].split.passages
        first, last = min(have), max(have)
        while first > 0 and passages[first - 1].section == key[1]:
            first -= 1
        while last + 1 < len(passages) and passages[last + 1].section == key[1]:
            last += 1
        others = [place for place in range(first, last + 1) if place not in have]
        return sorted(others, key=lambda place: (min(abs(place - one) for one in have), place))

    def _excerpt(
        self,
        key: tuple[int, int],
        have: dict[int, Passage],
        weighed: Sequence[WeightedPassage],
        is_widened: bool,
    ) -> _Excerpt:
        source = self._sources[key[0]]
        top = max(weighed, key=lambda each: (each.worth, -each.place))
        shares = {term: share for each in weighed for term, share in each.shares.items() if share == 1.0}
        order = sorted(have)
        spans: list[tuple[int, int]] = []
        for before, place in zip([-2, *order], order, strict=False):
            passage = have[place]
            if place == before + 1 and not self._is_cut(key[0], before, have):
                spans[-1] = (spans[-1][0], max(spans[-1][1], passage.end))
            else:
                spans.append((passage.start, passage.end))
        return _Excerpt(
            source=key[0],
            section=key[1],
            places=tuple(order),
            text=render_spans(source.split.content, spans, self._fences_of(key[0])),
            head=self._heads[key],
            worth=top.worth,
            terms=tuple(self._words[term] for term in sorted(shares)),
            nearness=top.nearness,
            is_widened=is_widened,
        )

    def _is_cut(self, source: int, place: int, have: dict[int, Passage]) -> bool:
        return have[place].end < self._sources[source].split.passages[place].end

    def _header(self, source: int, section: int) -> int:
        key = (source, section)
        if key not in self.headers:
            of = self._sources[source]
            path = of.split.sections[section]
            if self._style.is_compact:
                self._heads[key] = short_header(of.title, path, of.date, of.project)
                self.headers[key] = self._count(f"### [99] {self._heads[key]}") + 1
            else:
                self._heads[key] = header(of.title, of.path, of.version, path, of.project)
                self.headers[key] = self._count(self._heads[key]) + 1
        return self.headers[key]

    def _cost(self, source: int, passage: Passage) -> int:
        """Return the token cost of a passage that is shown without neighbours."""
        key = (source, passage.start, passage.end)
        if key not in self._costs:
            content = self._sources[source].split.content
            text = render_spans(content, [(passage.start, passage.end)], self._fences_of(source))
            self._costs[key] = self._count(text)
        return self._costs[key]

    def _fences_of(self, source: int) -> list[tuple[int, int]]:
        if source not in self._fences:
            content = self._sources[source].split.content
            has_code = "```" in content or "~~~" in content
            self._fences[source] = list(code_fences(content)) if has_code else []
        return self._fences[source]


def _concepts(text: str) -> tuple[str, ...]:
    """Return the distinct pairs of neighbouring words. For a text of one word, return the word."""
    found = [word for _, word in words(fold(text))]
    return tuple(dict.fromkeys(map(" ".join, pairwise(found)))) or tuple(found)


# -- omitted notes -------------------------------------------------------------------------------


def _dropped(material: Material, plan: _Plan, excerpts: Sequence[_Excerpt]) -> list[LeftOut]:
    """Return the candidates without an excerpt. Candidates that did not fit come first."""
    shown = {each.source for each in excerpts}
    dropped: list[LeftOut] = []
    for number, source in enumerate(material.sources):
        if number in shown:
            continue
        is_relevant = number in plan.relevant
        has_no_room = is_relevant and plan.smallest.get(number, plan.left + 1) > plan.left
        adds_little = is_relevant and not has_no_room
        dropped.append(
            LeftOut(
                id=source.id,
                title=source.title,
                tokens=-(-len(source.split.content) // 4),
                reason="no space left in the budget"
                if has_no_room
                else "adds too little to the shown text"
                if adds_little
                else "no passage is related to the query",
                has_no_room=has_no_room,
            )
        )
    return [*(one for one in dropped if one.has_no_room), *material.withheld,
            *(one for one in dropped if not one.has_no_room)]  # fmt: skip


def _list_left_out(dropped: Sequence[LeftOut], reserve: int, count: Count) -> str:
    named = [one for one in dropped if one.has_no_room]
    return left_out_text(named[:MOST_LEFT_OUT], reserve, count) if reserve else ""
