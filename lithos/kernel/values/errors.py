"""Domain errors (refusals): one exception class per wire code (docs/spec/tools.md §1.3).

A `LithosError` is a *refusal*: nothing was changed unless its message says so.
Only `lithos.server.tools` turns one into an envelope; bugs and dead disks are ordinary exceptions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar


class LithosError(Exception):
    """A refusal with a wire code: the name of the class in snake case, or its explicit code.

    `message` is one sentence that says what to do next; `extras` are the further keys of the
    envelope, in order; `tools` adds the empty `warnings` of a refused write.
    """

    code: ClassVar[str] = "internal_error"

    def __init_subclass__(cls) -> None:
        if cls.__module__ == __name__ and "code" not in vars(cls):
            cls.code = re.sub(r"(?<=.)(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(self, message: str, **extras: Any) -> None:
        super().__init__(message)
        self.message = message
        self.extras: Mapping[str, Any] = extras


def leaves_of(failure: BaseException) -> Iterator[BaseException]:
    """Return the failures in a group, or the failure itself."""
    if isinstance(failure, BaseExceptionGroup):
        for inner in failure.exceptions:
            yield from leaves_of(inner)
    else:
        yield failure


def first_of(failure: BaseException) -> BaseException:
    """Return the first of the failures in a group."""
    return next(leaves_of(failure))


class InvalidInput(LithosError):
    """An argument has a value that can never work."""


class Forbidden(LithosError):
    """The token lacks the right, or names another agent than the one it is bound to."""


class DocNotFound(LithosError):
    """No note has this id or path."""


class NoteNotFound(LithosError):
    """No note has this id (`lithos_note_update`)."""


class VersionConflict(LithosError):
    """`expected_version` is not the current version; extras: `current_version`, `warnings`.

    Of a merge with overlaps also `conflicts`, between the two.
    """


class SectionNotFound(LithosError):
    """No section has this path, or several have; extras: `candidates` (at most 20 paths)."""


class TextNotFound(LithosError):
    """The text to find does not occur."""


class TextAmbiguous(LithosError):
    """The text to find occurs more than once; extras: `count`."""


class VersionNotFound(LithosError):
    """This version is not kept; extras: `oldest_version`."""


class ProposalNotFound(LithosError):
    """No proposal has this id."""


class ProposalClosed(LithosError):
    """The proposal was decided already, or is being approved; extras: `proposal_status`, `decided_by`."""


class HistoryDisabled(LithosError):
    """`history.enabled` is off."""


class SlugCollision(LithosError):
    """Another note has the slug; extras: `existing_id`, `slug_collision_existing_id`, `warnings`."""


class PathCollision(LithosError):
    """The file exists already; extras: `existing_id`, `warnings`."""


class Duplicate(LithosError):
    """Another note has the `source_url`; extras: `duplicate_of`, `warnings`."""


class ContentTooLarge(LithosError):
    """The content exceeds `storage.max_content_size_bytes`."""


class StorageFailed(LithosError):
    """Storage failed; nothing was applied unless the message says so."""

    code = "internal_error"


class OutcomeUnknown(LithosError):
    """It is unknown whether an unanswered call took effect; the retry changed nothing."""


class VaultUnavailable(LithosError):
    """One of several vaults cannot be served now; the message says why."""


class InvalidMode(LithosError):
    """Unknown search mode."""


class SearchBackendFailed(LithosError):
    """No search backend could answer."""

    code = "search_backend_error"


class LcmaDisabled(LithosError):
    """`lcma.enabled` is false."""


class NotFound(LithosError):
    """No edge has this id (`lithos_conflict_resolve`)."""


class UpdateFailed(LithosError):
    """The edge could not be updated; nothing was changed."""


class ClaimFailed(LithosError):
    """Task missing, closed or blocked, or aspect held; extras: `reason`, the holder, or the blockers."""


class StaleFence(LithosError):
    """No active claim of the open task has this fence; extras: `held_by`, `expires_at` (null: no holder)."""


class ClaimNotFound(LithosError):
    """This agent holds no such claim."""


class TaskNotFound(LithosError):
    """The task is unknown, or not open where it must be."""


class ReceiptNotFound(LithosError):
    """The receipt is unknown or of another task."""


class TaskNotResolved(LithosError):
    """The task to reopen is open."""


class InvalidTaskType(LithosError):
    """Not `task`, `epic` or `gate`."""


class InvalidMetadataKey(LithosError):
    """`depends_on` or `blocked_on` in task metadata."""


class InvalidEdgeType(LithosError):
    """Not a task edge type."""


class SelfEdge(LithosError):
    """A task linked to itself."""


class NotAGate(LithosError):
    """`waits_on_gate` from a task that is not a gate."""


class Cycle(LithosError):
    """The edge would close a cycle."""


class ParentExists(LithosError):
    """The child has another parent."""


class InvalidRelationType(LithosError):
    """A spawn relation other than `discovered_from` or `blocks`."""


class IndexFailed(Exception):
    """A search index could not be changed, saved or opened for writing.

    The index stays usable for searches and may be tried again; notes are not affected.
    """
