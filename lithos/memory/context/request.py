"""The request for a briefing, its checks, and its answer (docs/spec/context.md §1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from attrs import field, frozen

from lithos.kernel.values.errors import InvalidInput
from lithos.memory.briefing.briefing import LEAST_BUDGET, MOST_BUDGET, Briefing
from lithos.memory.context.opening import OPENING
from lithos.memory.context.project_scope import EVERYTHING, ProjectScope
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.service.row_kinds import ALL_KINDS
from lithos.search.index.fulltext_schema import Filters
from lithos.search.service.other_files import OtherHit
from lithos.search.service.retrieval_filter import RetrievalFilter

SECTIONS: Final = ("task", "warnings", "notes", "activity")


class WaitingKeys(Protocol):
    """Further keys of a briefing for items that wait for a person.

    The keys exist only if a capability reports items that wait for a person.
    """

    def told(self) -> dict[str, int]:
        """Return the number of waiting items by key. If no item waits, the mapping is empty."""


class LoadedNotes(Protocol):
    """Notes that clients load on their own at the start of a session, so that no briefing repeats them."""

    def has(self, path: str, agent: str | None, project: str | None) -> bool:
        """Return whether the client of an agent has loaded a note when it works on a project."""


@frozen(kw_only=True)
class ContextRequest:
    """The subject of a briefing: a query, a task, or both.

    A briefing with one of the sections `OPENING` needs no subject. If `namespaces` is None, all namespaces
    are searched. `filters` contain the project filter of `scope`.
    """

    query: str = ""
    task_id: str | None = None
    budget: int = 2_000
    agent_id: str | None = None
    filters: Filters = field(factory=Filters)
    namespaces: tuple[str, ...] | None = None
    since: str | None = None
    sections: tuple[str, ...] = SECTIONS
    kinds: frozenset[str] = frozenset(ALL_KINDS)
    #: If True, the briefing has short headings and the notes' own dates, and includes replies after
    #: questions.
    is_compact: bool = False
    scope: ProjectScope = EVERYTHING

    def gate(self, catalogue: Catalogue) -> RetrievalFilter:
        """Return the filter for the notes that the caller may see and has asked for."""
        return RetrievalFilter(
            namespaces=None if self.namespaces is None else frozenset(self.namespaces),
            task_id=self.task_id,
            agent_id=self.agent_id,
            filters=self.filters,
            projects=catalogue.projects,
        )


@frozen(kw_only=True)
class ContextAnswer:
    """The answer to a briefing request.

    `cursor` is set only if requested, and `receipt_id` only if LCMA is on.

    `troubles` lists pairs (kind, reason) that explain why the answer is `degraded`, as far as known.
    """

    briefing: Briefing
    budget: int
    cursor: str | None
    receipt_id: str | None
    degraded: bool
    troubles: Sequence[tuple[str, str]] = ()
    #: Attachment hits among the excerpts, by id.
    places: Mapping[str, OtherHit] = field(factory=dict)


def check_request(request: ContextRequest) -> None:
    """Raise `InvalidInput` for a briefing without a subject, a budget out of range, or an unknown section."""
    if not request.query.strip() and request.task_id is None and not set(OPENING) & {*request.sections}:
        raise InvalidInput(
            "Give query, task_id or both. Only a briefing with the section pinned or work needs no subject."
        )
    if not LEAST_BUDGET <= request.budget <= MOST_BUDGET:
        raise InvalidInput(f"budget must be {LEAST_BUDGET} to {MOST_BUDGET} tokens, not {request.budget}.")
    for section in request.sections:
        if section not in SECTIONS and section not in OPENING:
            known = ", ".join((*SECTIONS, *OPENING))
            raise InvalidInput(f"sections may contain {known}, not {section[:100]!r}.")
