"""Interfaces that the writing actors need from later packages. `lithos.kernel.parts` provides them."""

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

#: Seconds after which an index with missing changes counts as failed (docs/spec/lifecycle.md §3).
PATIENCE: Final = 2.0


class NoteIndex(Protocol):
    """An index that follows the notes. The publisher waits for the first of several indexes."""

    @property
    def is_in_demand(self) -> bool:
        """Return whether clients searched the index recently, so that the publisher should wait for it."""

    @property
    def is_converged(self) -> bool:
        """Return whether the index had all notes at the last comparison and has taken every change since."""

    async def accept(self, change: Upsert | Removal) -> Envelope[IndexMessage, Indexed]:
        """Enqueue a change. Return the future of its reply."""

    def promise(self, envelope: Envelope[IndexMessage, Indexed]) -> None:
        """Make searches wait for an accepted change from now on."""

    def hurry(self) -> None:
        """Apply the accepted changes without delay."""

    def mark_stale(self) -> None:
        """Request a comparison of the index with the notes."""


class VersionStore(Protocol):
    """The store of versions. Its methods block and raise `HistoryFailed` if it cannot be read."""

    @property
    def loss(self) -> str | None:
        """Return what another program did to the store's files and how to repair it, or None."""

    def look(self) -> None:
        """Check whether the store's files exist. `loss` returns the result."""

    def places(self, ids: Collection[str]) -> Mapping[str, RecordedPlace]:
        """Return the last known paths of notes. Unknown and deleted notes are left out."""

    def contents(self, note_id: str, most: int) -> Iterable[bytes]:
        """Return the kept versions of a note, newest first."""

    def content(self, note_id: str, version: int) -> bytes | None:
        """Return the bytes of a version, or None if they are not kept."""


class VersionRecorder(Protocol):
    """Stores the versions of changes. Does nothing without a store."""

    @property
    def store(self) -> VersionStore | None:
        """The store of versions, or None if versions are not kept."""

    @property
    def is_failing(self) -> bool:
        """Whether the last commit failed, so that versions must be kept before files are changed."""

    async def keep_former(self, versions: Sequence[NewVersion]) -> None:
        """Keep the states that are about to be replaced, unless they are known to be kept.

        Raises `HistoryFailed`. In that case the caller must not replace anything.
        """

    async def record(self, versions: Sequence[NewVersion], *, is_pending: bool = True) -> list[int]:
        """Commit versions. Return their places for `settle`. Raises `HistoryFailed`."""

    async def settle(self, places: Sequence[int], results: Sequence[FileResult]) -> None:
        """Record the results of the changes behind these rows. Rows of refused changes are deleted."""

    def look_again(self) -> None:
        """Wake the catch-up task, because a version may be missing."""

    async def keep_tidy(self) -> None:
        """Settle rows soon, even without another change, and retry a failed store.

        This is a background task.
        """

    async def finish(self) -> None:
        """Confirm the remaining rows at shutdown, so that the next start need not check them."""


class OwnProposal(Protocol):
    """An agent's open proposal for a note."""

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
    """Stores changes that need a person's approval. Only the writer may call it."""

    @property
    def has_any(self) -> bool:
        """Return whether any change waits for approval."""

    def own(self, note_id: str, agent: str) -> OwnProposal | None:
        """Return this agent's open proposal for the text of a note."""

    async def load(self, proposal_id: str) -> ProposedText | None:
        """Return a text proposal with its files, or None if it was just deleted or is of another kind."""

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
        """Store a prepared change on disk.

        Return the reply, or the reason why the change cannot be stored.
        """
