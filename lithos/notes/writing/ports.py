"""Interfaces through which the writing actors use packages above them.

`lithos.kernel.parts` provides the implementations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

from attrs import frozen

from lithos.kernel.actors.mailboxes import Envelope
from lithos.notes.catalogue.catalogue import Entry
from lithos.notes.files.values import ReadFile
from lithos.notes.indexing_messages import Indexed, IndexMessage, Removal, Upsert
from lithos.notes.model.plan import RecordedPath as RecordedPlace
from lithos.notes.model.versions import NewVersion
from lithos.notes.writing.messages import Accepted, WriteRequest
from lithos.notes.writing.preparation import Prepared
from lithos.notes.writing.recording import FileResult

#: Number of seconds after which an index that has not applied its changes counts as failed
#: (docs/spec/lifecycle.md §3).
PATIENCE: Final = 2.0


class NoteIndex(Protocol):
    """Interface of an index of the notes.

    The publisher waits until one of several indexes has applied a change.
    """

    @property
    def is_in_demand(self) -> bool:
        """Return whether clients have recently searched the index.

        If clients have recently searched the index, the publisher should wait for the index.
        """

    @property
    def is_converged(self) -> bool:
        """Return whether the index was complete at the last comparison and has applied every change since."""

    async def accept(self, change: Upsert | Removal) -> Envelope[IndexMessage, Indexed]:
        """Add a change to the queue of the index. Return the envelope through which the reply arrives."""

    def promise(self, envelope: Envelope[IndexMessage, Indexed]) -> None:
        """Make all searches from now on wait for an accepted change."""

    def hurry(self) -> None:
        """Apply the accepted changes without further delay."""

    def mark_stale(self) -> None:
        """Request a comparison of the index with the notes."""


class VersionStore(Protocol):
    """Interface of the version store.

    The methods of the version store block, and raise `HistoryFailed` if the store is unreadable.
    """

    @property
    def loss(self) -> str | None:
        """Return what another program did to the store's files and how to repair this, or None."""

    def look(self) -> None:
        """Check whether the store's files exist. After that, `loss` returns the result."""

    def places(self, ids: Collection[str]) -> Mapping[str, RecordedPlace]:
        """Return the last known paths of notes. Unknown and deleted notes are left out."""

    def contents(self, note_id: str, most: int) -> Iterable[bytes]:
        """Return the kept versions of a note, newest first."""

    def content(self, note_id: str, version: int) -> bytes | None:
        """Return the bytes of a version, or None if the bytes were not kept."""


class VersionRecorder(Protocol):
    """Interface of the service that stores the versions of changes. Without a store, it does nothing."""

    @property
    def store(self) -> VersionStore | None:
        """The version store, or None if the history is disabled."""

    @property
    def is_failing(self) -> bool:
        """Whether the last commit failed.

        If the last commit failed, versions must be recorded before files are changed.
        """

    async def keep_former(self, versions: Sequence[NewVersion]) -> None:
        """Record the states that will be replaced, unless the history is known to contain them.

        Raises `HistoryFailed`. The caller must not replace anything in this case.
        """

    async def record(self, versions: Sequence[NewVersion], *, is_pending: bool = True) -> list[int]:
        """Commit versions. Return the row positions for `settle`. Raises `HistoryFailed`."""

    async def settle(self, places: Sequence[int], results: Sequence[FileResult]) -> None:
        """Record the results of the changes to which the rows belong.

        Rows of refused changes are deleted.
        """

    def look_again(self) -> None:
        """Wake the catch-up task, because a version may be missing."""

    async def keep_tidy(self) -> None:
        """Record the results for rows soon, even if no further change is made.

        If the store failed, try again.

        `keep_tidy` is a background task.
        """

    async def finish(self) -> None:
        """Confirm the remaining rows at shutdown. The next start then does not have to check these rows."""


class OwnProposal(Protocol):
    """Interface of an agent's open proposal for a note."""

    @property
    def id(self) -> str:
        """The id of the proposal."""

    @property
    def path(self) -> str:
        """The path of the note."""


@frozen(kw_only=True)
class ProposedText:
    """An agent's open proposal for a note's text, with the files before (`base`) and after (`data`)."""

    note_id: str
    path: str
    base_version: int | None
    base: bytes | None
    data: bytes
    is_new: bool


class ChangeGate(Protocol):
    """Interface of the service that stores changes that need a person's approval.

    Only the writer may call it.
    """

    @property
    def has_any(self) -> bool:
        """Return whether there are any changes that wait for approval."""

    def own(self, note_id: str, agent: str) -> OwnProposal | None:
        """Return the agent's open proposal for the text of a note, or None."""

    async def load(self, proposal_id: str) -> ProposedText | None:
        """Return a text proposal with its files.

        If the proposal was just deleted or is of another kind, return None.
        """

    def as_file(
        self, own: ProposedText, entry: Entry | None, source: ReadFile | Exception | None
    ) -> ReadFile | Exception | None:
        """Return the proposed file, to be used instead of the current file `source`."""

    async def keep(
        self,
        request: WriteRequest,
        prepared: Prepared,
        source: ReadFile | Exception | None,
        own: ProposedText | None,
    ) -> Accepted | Exception:
        """Store a prepared change as a proposal on disk.

        Return the reply, or the reason why the change cannot be stored.
        """
