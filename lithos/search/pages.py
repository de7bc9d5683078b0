"""The console page `/console/search`: search results in any mode, with the reasons for each rank.

The page can also compare two modes.

While the user types, only the results are fetched (`?partial=1`). No retrieval is run then, because a
retrieval stores a receipt and affects the memory. A retrieval starts when the user submits the form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import evolve, field, frozen
from quart import Blueprint, Response, request

from lithos.history.service.history import NoteHistory
from lithos.kernel.values.errors import LithosError
from lithos.search.index.fulltext_schema import Filters
from lithos.search.service.explaining import Explained, Explanation
from lithos.search.service.search import MODES, Search, SearchRequest
from lithos.server.console.console import Console, PageRefused
from lithos.server.console.formats import plural, readable, whole
from lithos.text.snippet import Terms, mark_matches

RETRIEVE: Final = "retrieve"
ALL_MODES: Final = (*MODES, RETRIEVE)
LIMITS: Final = (10, 25, 50)
#: Maximum number of contradictions shown next to results, and the fields that have the ids of their two
#: notes.
MOST_CONFLICTS: Final = 50
ENDS: Final = ("from_id", "to_id")
#: Maximum number of characters of a snippet: for up to 10 results, for more results, and for comparisons.
WHOLE_SNIPPET: Final = 1_000
SHORT_SNIPPET: Final = 360
COMPARED_SNIPPET: Final = 160
#: Differences between scores up to this value count as rounding errors.
_SAME: Final = 1e-6
#: Filters that each mode does not support.
_UNKNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    RETRIEVE: ("author", "entities", "threshold", "seed_ids"),
    **dict.fromkeys(MODES, ("namespace", "task_id")),
}
FILTERS: Final = (
    "tags", "path_prefix", "author", "namespace", "entities", "threshold", "seed_ids", "task_id"
)  # fmt: skip
_NAMES: Final = {
    "author": "the author", "entities": "entities", "threshold": "the threshold", "seed_ids": "start notes",
    "namespace": "the namespace", "task_id": "the task",
}  # fmt: skip


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the search page to the console."""
    app.get("/search", endpoint="search")(SearchPage(console).show)


@frozen(kw_only=True)
class SearchForm:
    """The submitted form. `filters` maps the name of each other field to its text."""

    q: str
    mode: str
    against: str
    depth: int
    limit: int
    offset: int
    filters: Mapping[str, str]

    @classmethod
    def read(cls, args: Mapping[str, str]) -> SearchForm:
        """Read the form from a query string. The default replaces an invalid choice."""
        given = {name: args.get(name, "").strip() for name in ("mode", "against", "limit", "depth", "offset")}
        mode, against, limit = given["mode"], given["against"], whole(given["limit"])
        return cls(
            q=args.get("q", ""),
            mode=mode if mode in ALL_MODES else MODES[0],
            against=against if against in ALL_MODES and against != mode else "",
            depth=min(3, max(1, whole(given["depth"]) or 2)),
            limit=limit if limit in LIMITS else LIMITS[0],
            offset=whole(given["offset"]) or 0,
            filters={name: args.get(name, "").strip() for name in FILTERS},
        )

    @property
    def is_empty(self) -> bool:
        """Return whether the form contains no query and no filters."""
        return not self.q.strip() and not (self.mode == "graph" and self.filters["seed_ids"])

    def ignored_by(self, mode: str) -> list[str]:
        """Return the filled-in filters that a mode does not support."""
        return [_NAMES[name] for name in _UNKNOWN[mode] if self.filters[name]]

    def arguments(self, mode: str) -> dict[str, Any]:
        """Return the arguments for the tool that runs this search mode."""
        texts = self.filters
        wanted = {
            "query": self.q,
            "limit": self.limit,
            "offset": self.offset or None,
            "tags": _items(texts["tags"]),
            "path_prefix": texts["path_prefix"] or None,
        }
        if mode == RETRIEVE:
            return wanted | {
                "namespace_filter": _items(texts["namespace"]),
                "task_id": texts["task_id"] or None,
                "surface_conflicts": True,
            }
        walk = {"seed_ids": _items(texts["seed_ids"]), "graph_depth": self.depth} if mode == "graph" else {}
        return (
            wanted
            | walk
            | {
                "mode": mode,
                "author": texts["author"] or None,
                "entities": _items(texts["entities"]),
                "threshold": _threshold(texts["threshold"]),
            }
        )


#: One part of a score as a segment of a bar: name, start and length (0..100), and value.
Piece = tuple[str, float, float, float]


@frozen(kw_only=True)
class ResultRow:
    """One result: the row that the tool returned, and the reasons for its rank."""

    place: int
    data: Mapping[str, Any]
    why: Explanation | None
    parts: Sequence[Piece]
    #: Amount that earlier citations add to the score in a retrieval.
    memory: float | None = None


@frozen(kw_only=True)
class ResultColumn:
    """The answer in one mode. It has a `refusal` if the tool failed, or a `hint` if there is no query."""

    mode: str
    rows: Sequence[ResultRow] = ()
    message: str = ""
    refusal: str = ""
    hint: str = ""
    failed: Sequence[str] = ()
    receipt_id: str | None = None
    conflicts: Sequence[Mapping[str, Any]] = ()
    ignored: Sequence[str] = ()
    terms: Terms = field(factory=Terms)
    status: int = 200
    next_offset: int | None = None
    #: Ranks of the notes in the second column. None if there is only one column.
    others: Mapping[str, int] | None = None

    @property
    def announcement(self) -> str:
        """Return the announcement for screen readers."""
        return self.refusal or self.hint or f"{plural(len(self.rows), 'result')} in mode {self.mode}"

    def mark(self, text: str, most: int = WHOLE_SNIPPET) -> list[tuple[str, bool]]:
        """Split a snippet into parts. Each part has a flag that is True for words of the query."""
        return mark_matches(readable(text, most), self.terms)


@frozen
class SearchPage:
    """The search page and its results."""

    _console: Console

    async def show(self) -> Response:
        """Return the whole page, or only its results."""
        asked, is_partial = SearchForm.read(request.args), "partial" in request.args
        columns: list[ResultColumn] = []
        if not asked.is_empty:
            columns.append(await self._ask(asked, asked.mode, is_live=is_partial))
            if asked.against:
                columns.append(await self._ask(asked, asked.against, is_live=is_partial))
        if len(columns) == 2:
            other = columns[0]
            places = (
                None if other.refusal or other.hint else {row.data["id"]: row.place for row in other.rows}
            )
            columns[1] = evolve(columns[1], others=places)
        return await self._console.show(
            "search_results.html" if is_partial else "search.html",
            status=max([200, *(column.status for column in columns)]) if not is_partial else 200,
            asked=asked,
            columns=columns,
            **(await self._console.panels("search") if asked.is_empty else {}),
            modes=ALL_MODES,
            limits=LIMITS,
            most=SHORT_SNIPPET if asked.limit > LIMITS[0] else WHOLE_SNIPPET,
            compared_most=COMPARED_SNIPPET,
            titles=await self._console.parts.get(NoteHistory).titles(
                edge[end] for each in columns for edge in each.conflicts[:MOST_CONFLICTS] for end in ENDS
            ),
        )

    async def _ask(self, asked: SearchForm, mode: str, *, is_live: bool) -> ResultColumn:
        """Call the tool and explain the ranks in its answer."""
        if mode == RETRIEVE and is_live:
            hint = "Press Enter to retrieve. Each retrieval stores a receipt, so typing does not start one."
            return ResultColumn(mode=mode, hint=hint)
        try:
            tool = "lithos_retrieve" if mode == RETRIEVE else "lithos_search"
            told = asked.arguments(mode) | ({"prefix": True} if is_live else {})
            answer = await self._console.call(tool, agent_id=self._console.agent, **told)
        except PageRefused as refused:
            return ResultColumn(mode=mode, refusal=refused.message, status=refused.status)
        results = answer.get("results", [])
        explained = await self._explain(asked, mode, [row["id"] for row in results], is_live=is_live)
        return ResultColumn(
            mode=mode,
            rows=_rows(results, explained, mode, asked.offset),
            message=str(answer.get("message", "")),
            failed=[*answer.get("failed_backends", ()), *answer.get("failed_scouts", ())],
            receipt_id=answer.get("receipt_id"),
            conflicts=answer.get("conflicts", ()),
            ignored=asked.ignored_by(mode),
            terms=explained.terms,
            next_offset=asked.offset + len(results) if len(results) >= asked.limit else None,
        )

    async def _explain(
        self, asked: SearchForm, mode: str, note_ids: Sequence[str], *, is_live: bool
    ) -> Explained:
        """Return the explanations of ranks.

        The result is empty if the search cannot be answered at the moment.
        """
        is_search, told = mode != RETRIEVE, asked.arguments(mode)
        wanted = SearchRequest(
            query=asked.q,
            mode=mode if is_search else "hybrid",
            limit=asked.limit if is_search else asked.limit + asked.offset,
            offset=asked.offset if is_search else 0,
            threshold=told.get("threshold"),
            filters=Filters(
                tags=tuple(told["tags"] or ()),
                author=told.get("author"),
                path_prefix=told["path_prefix"],
                entities=tuple(told.get("entities") or ()),
            ),
            seed_ids=tuple(told.get("seed_ids") or ()),
            graph_depth=asked.depth,
            prefix=is_live,
        )
        try:
            return await self._console.parts.get(Search).explain(wanted, note_ids)
        except LithosError:
            return Explained()


def _rows(
    results: Sequence[Mapping[str, Any]], explained: Explained, mode: str, offset: int
) -> list[ResultRow]:
    highest = max((float(row["score"]) for row in results), default=0.0)
    longest = max(highest, 1.0) if mode in ("hybrid", RETRIEVE) else highest
    rows = []
    for place, row in enumerate(results, start=offset + 1):
        why = explained.by_id.get(row["id"])
        memory = None
        if mode == RETRIEVE and why is not None and abs(row["score"] - why.score) > _SAME:
            memory = row["score"] - why.score
        rows.append(
            ResultRow(place=place, data=row, why=why, parts=_parts(why, memory, longest), memory=memory)
        )
    return rows


def _parts(why: Explanation | None, memory: float | None, longest: float) -> list[Piece]:
    """Return the parts of a score as segments of a bar."""
    if why is None or longest <= 0:
        return []
    if why.walk is not None:
        named = list(zip(("links", "distance", "meaning"), why.walk.parts, strict=True))
    else:
        legs = (("words", why.words), ("meaning", why.meaning), ("lead", why.lead))
        named = [(name, leg.part) for name, leg in legs if leg is not None]
    named += [("memory", memory)] if memory is not None and memory > 0 else []
    parts, start = list[Piece](), 0.0
    for name, value in named:
        length = 100 * value / longest
        if length > 0:
            parts.append((name, round(start, 2), round(length, 2), value))
            start += length
    return parts


def _items(text: str) -> list[str] | None:
    """Split a comma-separated list. Returns None for an empty list."""
    return [part.strip() for part in text.split(",") if part.strip()] or None


def _threshold(text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
