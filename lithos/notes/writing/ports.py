"""What the writing actors need of capabilities that come after notes; `lithos.kernel.parts` finds them."""

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

#: Seconds after which an index that lacks changes counts as failed (docs/spec/lifecycle.md §3).
PATIENCE: Final = 2.0


class NoteIndex(Protocol):
    """An index that follows the notes. The first of several is waited for."""

    @property
    def is_in_demand(self) -> bool:
        """Whether it was searched lately, and is worth waiting for."""

    @property
    def is_converged(self) -> bool:
        """Whether it held all notes at the last comparison, and took every change since."""

    async def accept(self, change: Upsert | Removal) -> Envelope[IndexMessage, Indexed]:
        """Enqueue a change; returns the future of its reply."""

    def promise(self, envelope: Envelope[IndexMessage, Indexed]) -> None:
        """Have searches wait for an accepted change from now on."""

    def hurry(self) -> None:
        """Have what was accepted applied without lingering."""

    def mark_stale(self) -> None:
        """Have the index compared with the notes."""


class VersionStore(Protocol):
    """Where versions are kept. Methods block; they raise `HistoryFailed` where it cannot be read."""

    @property
    def loss(self) -> str | None:
        """What another program did to its files, and what to do about it."""

    def look(self) -> None:
        """Look whether its files are there: `loss` says it."""

    def places(self, ids: Collection[str]) -> Mapping[str, RecordedPlace]:
        """Where notes were last, of those that are known and not deleted."""

    def contents(self, note_id: str, most: int) -> Iterable[bytes]:
        """The kept versions of a note, the newest first."""

    def content(self, note_id: str, version: int) -> bytes | None:
        """The bytes of a version; None where it is not kept."""


class VersionRecorder(Protocol):
    """Keeps the versions that changes make. Without a store it does nothing."""

    @property
    def store(self) -> VersionStore | None:
        """Where versions are kept; None where they are not."""

    @property
    def is_failing(self) -> bool:
        """Whether the last commit failed: then versions are to be kept before files are changed."""

    async def keep_former(self, versions: Sequence[NewVersion]) -> None:
        """Keep the states that are about to be replaced, where it is not known that they are kept.

        Raises `HistoryFailed`: nothing may be replaced then.
        """

    async def record(self, versions: Sequence[NewVersion], *, is_pending: bool = True) -> list[int]:
        """Commit versions; returns their places for `settle`. Raises `HistoryFailed`."""

    async def settle(self, places: Sequence[int], results: Sequence[FileResult]) -> None:
        """Note what became of the changes of these rows; those that were refused are dropped now."""

    def look_again(self) -> None:
        """Have the catching up look: something may lack."""

    async def keep_tidy(self) -> None:
        """Background task: settle rows soon, also without another change, and try a store that failed."""

    async def finish(self) -> None:
        """At a stop: confirm what is left, so that the next start need not look."""


class OwnProposal(Protocol):
    """What an agent proposes for a note already."""

    @property
    def id(self) -> str:
        """The id of the proposal."""

    @property
    def path(self) -> str:
        """The path of the note."""


@frozen(kw_only=True)
class ProposedText:
    """What an agent proposes for the text of a note, with the files before (`base`) and after (`data`)."""

    note_id: str
    path: str
    base_version: int | None
    base: bytes | None
    data: bytes
    is_new: bool


class ChangeGate(Protocol):
    """Keeps a change that may be made only once a person has looked. The writer alone may have it do so."""

    @property
    def has_any(self) -> bool:
        """Whether any change waits."""

    def own(self, note_id: str, agent: str) -> OwnProposal | None:
        """What this agent proposes for the text of a note."""

    async def load(self, proposal_id: str) -> ProposedText | None:
        """A proposal of a text with its files; None for another kind, and for one that just went."""

    def as_file(
        self, own: ProposedText, entry: Entry | None, source: ReadFile | Exception | None
    ) -> ReadFile | Exception | None:
        """The file as it is proposed, in the place of `source`, the one that is there."""

    async def keep(
        self,
        request: WriteRequest,
        prepared: Prepared,
        source: ReadFile | Exception | None,
        own: ProposedText | None,
    ) -> Accepted | Exception:
        """Keep a prepared change durably; the reply that the caller gets, or why it could not be kept."""
