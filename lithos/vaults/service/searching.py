"""One search in several vaults, which rank their own notes (docs/spec/vaults.md §2).

The rows are merged by score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import trio
from attrs import evolve, field, frozen

from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import InvalidInput, InvalidMode, LithosError
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.search.indexing.semantic import SemanticBackend
from lithos.search.service.hybrid import backend_failure
from lithos.search.service.search import Hit, RankedRows, Search, SearchRequest
from lithos.vaults.model_joining import by_rank, even_out, interleave
from lithos.vaults.service.joining import model_of, on_one_scale


@frozen
class JointAnswer:
    """Rows of several vaults as pairs (vault name, hit), best first.

    `failed` maps vaults that did not respond to the reason. `lacking` maps vaults to the backends
    (`fulltext`, `semantic`) that were missing there. `message` summarises both, or explains why nothing was
    searched.
    """

    rows: tuple[tuple[str, Hit], ...]
    failed: Mapping[str, str] = field(factory=dict)
    lacking: Mapping[str, tuple[str, ...]] = field(factory=dict)
    message: str = ""


@frozen(eq=False)
class JointSearch:
    """Joint search in one or more vaults. The settings of the first vault limit the number of rows."""

    vaults: Mapping[str, Parts]

    async def search(self, request: SearchRequest) -> JointAnswer:
        """Return the best matches of all vaults. Each vault records which of its own matches were returned.

        Raises `InvalidMode` and `InvalidInput`, and `SearchBackendFailed` if every vault fails.
        """
        answer = await self.look(request)
        if request.mode == "graph" or request.query.strip():
            for name, services in self.vaults.items():
                if name not in answer.failed:
                    services.get(Search).record(request, [hit for vault, hit in answer.rows if vault == name])
        return answer

    async def look(self, request: SearchRequest) -> JointAnswer:
        """Return the same matches as `search`, but do not record the caller and the returned rows."""
        _, limit = next(iter(self.vaults.values())).get(Search).bounds(request)
        failed: dict[str, str] = {}
        ranked = self._comparing(request, await self._rank(request, failed))
        if not ranked:
            raise backend_failure(_each(failed))
        rows = await self._present(request, ranked, limit, failed)
        lacking = {name: each.failed for name, each in ranked.items() if each.failed and name not in failed}
        return JointAnswer(rows, failed, lacking, _tell(ranked, failed))

    async def _rank(self, request: SearchRequest, failed: dict[str, str]) -> dict[str, RankedRows]:
        """Return the ranking of each vault. Raises errors in the request itself."""
        ranked: dict[str, RankedRows] = {}
        refusals: list[LithosError] = []

        async def rank(name: str, services: Parts) -> None:
            try:
                ranked[name] = await services.get(Search).rank(request)
            except (InvalidInput, InvalidMode) as refusal:
                refusals.append(refusal)
            except LithosError as failure:
                failed[name] = failure.message

        async with trio.open_nursery() as nursery:
            for name, services in self.vaults.items():
                nursery.start_soon(rank, name, services)
        if refusals:
            raise refusals[0]
        return {name: ranked[name] for name in self.vaults if name in ranked}

    def _comparing(self, request: SearchRequest, ranked: Mapping[str, RankedRows]) -> dict[str, RankedRows]:
        """Return full-text and hybrid rankings with comparable scores. Other rankings are not changed."""
        if request.mode == "fulltext":
            factors = even_out({name: each.terms.total for name, each in ranked.items()})
            return {
                name: evolve(each, scores=[(serial, factors[name] * score) for serial, score in each.scores])
                for name, each in ranked.items()
            }
        rankings = {name: each.ranking for name, each in ranked.items() if each.ranking is not None}
        scaled = on_one_scale(rankings, self.vaults)
        return {
            name: evolve(each, scores=scaled[name].scores) if name in scaled else each
            for name, each in ranked.items()
        }

    async def _present(
        self, request: SearchRequest, ranked: Mapping[str, RankedRows], limit: int, failed: dict[str, str]
    ) -> tuple[tuple[str, Hit], ...]:
        """Select the requested page from all rankings, and read the text of its rows in each vault."""
        last = request.offset + limit
        found = {name: self._first(name, each, last) for name, each in ranked.items()}
        marks = {name: [score for _, score in rows] for name, rows in found.items()}
        if not self._compare(request, ranked, found):
            marks = {name: by_rank(len(rows)) for name, rows in found.items()}
        chosen = interleave(marks, last)[request.offset :]
        shown: dict[tuple[str, int], Hit] = {}

        async def read(name: str, own: Sequence[tuple[int, float]]) -> None:
            room = request.room * len(own) // max(1, len(chosen))
            rows = evolve(ranked[name], scores=own)
            try:
                hits = (
                    await self.vaults[name]
                    .get(Search)
                    .present(evolve(request, offset=0, room=room), rows, len(own))
                )
            except LithosError as failure:
                failed[name] = failure.message
                return
            shown.update(((name, hit.entry.serial), hit) for hit in hits)

        async with trio.open_nursery() as nursery:
            for name, rows in found.items():
                own = [rows[row] for vault, row in chosen if vault == name]
                if own:
                    nursery.start_soon(read, name, own)
        keys = [(name, found[name][row][0]) for name, row in chosen]
        return tuple((name, shown[name, serial]) for name, serial in keys if (name, serial) in shown)

    def _first(self, name: str, ranked: RankedRows, most: int) -> list[tuple[int, float]]:
        """Return the first `most` rows of a vault whose notes still exist."""
        get, rows = self.vaults[name].get(Catalogue).at_serial, list[tuple[int, float]]()
        for serial, score in ranked.scores:
            if len(rows) == most:
                break
            if get(serial) is not None:
                rows.append((serial, score))
        return rows

    def _compare(
        self, request: SearchRequest, ranked: Mapping[str, RankedRows], found: Mapping[str, Sequence[object]]
    ) -> bool:
        """Return whether scores are comparable.

        Semantic scores need one model, other scores need complete searches.
        """
        if request.mode != "semantic":
            return not any(each.failed for each in ranked.values())
        asked = [self.vaults[name] for name, rows in found.items() if rows]
        return len({model_of(each, calibration=each.get(SemanticBackend).calibration) for each in asked}) < 2


def _tell(ranked: Mapping[str, RankedRows], failed: Mapping[str, str]) -> str:
    """Return the reasons why answers of vaults are missing or incomplete.

    A reason that applies to all vaults appears once.
    """
    told = [f"{name} did not answer: {reason}" for name, reason in failed.items()]
    messages = {name: each.message for name, each in ranked.items() if each.message and name not in failed}
    if len(messages) == len(ranked) and len(set(messages.values())) == 1:
        return "; ".join([*told, *set(messages.values())])
    return "; ".join([*told, *(f"{name}: {message}" for name, message in messages.items())])


def _each(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
