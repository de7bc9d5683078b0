"""One briefing from the content of several vaults (docs/spec/vaults.md §2).

Notes of all vaults are ranked together within one token budget. Each vault stores a receipt of its own notes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Final

import attrs
from attrs import frozen

from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import InvalidInput, LithosError, TaskNotFound
from lithos.memory.briefing.briefing import Briefing
from lithos.memory.briefing.material import Material
from lithos.memory.briefing.opening import PinnedNotes
from lithos.memory.context.candidates import has_strong
from lithos.memory.context.context import NOTHING_TOLD, BriefingMaterial, Context
from lithos.memory.context.request import ContextAnswer, ContextRequest
from lithos.memory.retrieve.retrieve import RetrieveRequest
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.search.service.hybrid import HybridRanking
from lithos.search.service.search import Search
from lithos.tasks.model.open_tasks import join_tasks
from lithos.tasks.service.coordination import Coordination
from lithos.text.snippet import Terms
from lithos.vaults.service.retrieving import JointRetrieve

#: A cursor for several vaults. It lists the cursor of each vault, for example `work:12,home:9`.
_CURSOR: Final = re.compile(r"[a-z0-9-]{1,32}:[0-9]{1,20}(?:,[a-z0-9-]{1,32}:[0-9]{1,20}){0,999}")


@frozen
class JointBriefing:
    """A briefing whose entry ids contain the vault name. `split_id` splits such an id.

    The briefing also contains a briefing for each vault. `failed` contains the errors of vaults that could
    not respond.
    """

    briefing: Briefing
    answers: Mapping[str, ContextAnswer]
    failed: Mapping[str, str]

    @property
    def cursor(self) -> str | None:
        """The cursor at which the next briefing of these vaults continues."""
        cursors = {name: answer.cursor for name, answer in self.answers.items() if answer.cursor is not None}
        return ",".join(f"{name}:{cursor}" for name, cursor in cursors.items()) or None


@frozen(eq=False)
class JointContext:
    """Briefing service for one or more vaults."""

    vaults: Mapping[str, Parts]

    async def brief(self, request: ContextRequest) -> JointBriefing:
        """Return a briefing within the budget.

        Raises `InvalidInput` and `TaskNotFound`. Errors of single vaults are returned in `failed`.
        """
        cursors = _read_cursor(request.since)
        task_of = await self._owner_of_task(request.task_id)
        query = request.query
        if not query.strip() and task_of is not None and request.task_id is not None:
            query = await self.vaults[task_of].get(Context).query_of(request.task_id)
        retrieve = JointRetrieve(self.vaults)
        rankings = await retrieve.rank(
            RetrieveRequest(query=query, limit=20, agent_id=request.agent_id, filters=request.filters)
        )
        if request.scope.may_widen and self._has_strong(request, rankings):
            request = attrs.evolve(request, scope=attrs.evolve(request.scope, may_widen=False))
        failed: dict[str, str] = {}
        async with AsyncExitStack() as stack:
            gathered: dict[str, BriefingMaterial] = {}
            for name, services in self.vaults.items():
                own = attrs.evolve(
                    request,
                    query=query,
                    task_id=request.task_id if name == task_of else None,
                    since=cursors.get(name),
                )
                try:
                    gathered[name] = await stack.enter_async_context(
                        services.get(Context).gather(own, rankings.get(name))
                    )
                except LithosError as refusal:
                    if isinstance(refusal, InvalidInput):
                        raise
                    failed[name] = refusal.message
            if not gathered:
                raise InvalidInput("; ".join(f"{name}: {why}" for name, why in failed.items()))
            first = self.vaults[next(iter(gathered))]
            is_silent = all(each.is_silent for each in gathered.values())
            material = _join(
                [_qualified(name, each.material) for name, each in gathered.items() if not each.is_silent]
            )
            briefing = NOTHING_TOLD
            if not is_silent:
                count = next(iter(gathered.values())).count
                briefing = await first.get(Context).compose(material, request.budget, count)
            answers = {
                name: await each.answer(_part(briefing, name), request.budget)
                for name, each in gathered.items()
            }
        return JointBriefing(briefing, answers, failed)

    def _has_strong(self, request: ContextRequest, rankings: Mapping[str, HybridRanking]) -> bool:
        """Return whether a note of the requested projects matches strongly in any vault.

        If one does, no vault adds notes of other projects.
        """
        for name, ranking in rankings.items():
            verdicts = self.vaults[name].get(Search).judged(ranking) or {}
            catalogue = self.vaults[name].get(Catalogue)
            gate = request.gate(catalogue)
            if has_strong(verdicts, filter(gate.passes, catalogue.at_serials(verdicts))):
                return True
        return False

    async def _owner_of_task(self, task_id: str | None) -> str | None:
        """Return the name of the vault that has a task. Raises `TaskNotFound` if no vault has the task."""
        if task_id is None:
            return None
        for name, services in self.vaults.items():
            if await services.get(Coordination).status(task_id):
                return name
        raise TaskNotFound(f"Task '{task_id[:100]}' not found.")


def _read_cursor(text: str | None) -> dict[str, str]:
    if text is None or not text.strip():
        return {}
    if not _CURSOR.fullmatch(text):
        raise InvalidInput(
            "since must be the cursor of an earlier briefing over all vaults, for example "
            "work:12,home:9. A cursor of one vault works only in that vault."
        )
    return {name: cursor for name, _, cursor in (each.partition(":") for each in text.split(","))}


def _join(every: Sequence[Material]) -> Material:
    """Merge the material of all vaults. Sources are sorted best first, other material by vault."""
    sources = sorted(
        (source for each in every for source in each.sources), key=lambda each: (-each.score, each.id)
    )
    return Material(
        task=next((each.task for each in every if each.task is not None), None),
        sources=sources,
        terms=next((each.terms for each in every if each.terms.terms), Terms()),
        warnings=[warning for each in every for warning in each.warnings],
        activity=[line for each in every for line in each.activity],
        decisions=[line for each in every for line in each.decisions],
        withheld=[left for each in every for left in each.withheld],
        pinned=PinnedNotes(
            [note for each in every for note in each.pinned.shown], sum(each.pinned.total for each in every)
        ),
        work=join_tasks([each.work for each in every]),
        is_opening=any(each.is_opening for each in every),
        has_query=all(each.has_query for each in every),
    )


def split_id(qualified: str) -> tuple[str, str]:
    """Split an entry id of a joint briefing into vault name and id. Two vaults may use the same id."""
    name, _, own = qualified.partition(":")
    return name, own


def _qualified(name: str, material: Material) -> Material:
    """Return one vault's material with the vault's name at the start of each id."""
    return attrs.evolve(
        material,
        sources=[attrs.evolve(each, id=f"{name}:{each.id}") for each in material.sources],
        withheld=[attrs.evolve(each, id=f"{name}:{each.id}") for each in material.withheld],
        warnings=[attrs.evolve(each, note_id=f"{name}:{each.note_id}") for each in material.warnings],
        pinned=attrs.evolve(
            material.pinned,
            shown=[
                attrs.evolve(each, id=f"{name}:{each.id}", path=f"{name}: {each.path}")
                for each in material.pinned.shown
            ],
        ),
    )


def _part(briefing: Briefing, name: str) -> Briefing:
    """Return one vault's part of the briefing, with that vault's ids. The token count covers all vaults."""
    items = [(split_id(item.id), item) for item in briefing.items]
    own = [attrs.evolve(item, id=note_id) for (owner, note_id), item in items if owner == name]
    return attrs.evolve(briefing, items=own)
