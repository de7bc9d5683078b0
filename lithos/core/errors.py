"""Domain errors (refusals): one exception class per wire code (docs/spec/tools.md §1.3).

A `LithosError` is a *refusal*: nothing was changed unless its message says so.
Only `lithos.tools` turns one into an envelope; bugs and dead disks are ordinary exceptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class LithosError(Exception):
    """A refusal with a wire code.

    `message` is one sentence that says what to do next; `extras` are the further keys of the
    envelope, in order.
    """

    code: ClassVar[str] = "internal_error"

    def __init__(self, message: str, **extras: Any) -> None:
        super().__init__(message)
        self.message = message
        self.extras: Mapping[str, Any] = extras


class InvalidInput(LithosError):
    """An argument has a value that can never work."""

    code = "invalid_input"


class Forbidden(LithosError):
    """The token lacks the right, or names another agent than the one it is bound to."""

    code = "forbidden"


class DocNotFound(LithosError):
    """No note has this id or path."""

    code = "doc_not_found"


class NoteNotFound(LithosError):
    """No note has this id (`lithos_note_update`)."""

    code = "note_not_found"


class VersionConflict(LithosError):
    """`expected_version` is not the current version; extras: `current_version`, `warnings`.

    Of a merge with overlaps also `conflicts`, between the two.
    """

    code = "version_conflict"


class SectionNotFound(LithosError):
    """No section has this path, or several have; extras: `candidates` (at most 20 paths)."""

    code = "section_not_found"


class TextNotFound(LithosError):
    """The text to find does not occur."""

    code = "text_not_found"


class TextAmbiguous(LithosError):
    """The text to find occurs more than once; extras: `count`."""

    code = "text_ambiguous"


class VersionNotFound(LithosError):
    """This version is not kept; extras: `oldest_version`."""

    code = "version_not_found"


class HistoryDisabled(LithosError):
    """`history.enabled` is off."""

    code = "history_disabled"


class SlugCollision(LithosError):
    """Another note has the slug; extras: `existing_id`, `slug_collision_existing_id`, `warnings`."""

    code = "slug_collision"


class PathCollision(LithosError):
    """The file exists already; extras: `existing_id`, `warnings`."""

    code = "path_collision"


class Duplicate(LithosError):
    """Another note has the `source_url`; extras: `duplicate_of`, `warnings`."""

    code = "duplicate"


class ContentTooLarge(LithosError):
    """The content exceeds `storage.max_content_size_bytes`."""

    code = "content_too_large"


class StorageFailed(LithosError):
    """Storage failed; nothing was applied unless the message says so."""

    code = "internal_error"


class InvalidMode(LithosError):
    """Unknown search mode."""

    code = "invalid_mode"


class SearchBackendFailed(LithosError):
    """No search backend could answer."""

    code = "search_backend_error"


class LcmaDisabled(LithosError):
    """`lcma.enabled` is false."""

    code = "lcma_disabled"


class NotFound(LithosError):
    """No edge has this id (`lithos_conflict_resolve`)."""

    code = "not_found"


class UpdateFailed(LithosError):
    """The edge could not be updated; nothing was changed."""

    code = "update_failed"


class ClaimFailed(LithosError):
    """Task missing, closed or blocked, or aspect held; extras: `reason`, the holder, or the blockers."""

    code = "claim_failed"


class StaleFence(LithosError):
    """No active claim of the open task has this fence; extras: `held_by`, `expires_at` (null: nobody)."""

    code = "stale_fence"


class ClaimNotFound(LithosError):
    """This agent holds no such claim."""

    code = "claim_not_found"


class TaskNotFound(LithosError):
    """The task is unknown, or not open where it must be."""

    code = "task_not_found"


class ReceiptNotFound(LithosError):
    """The receipt is unknown or of another task."""

    code = "receipt_not_found"


class TaskNotResolved(LithosError):
    """The task to reopen is open."""

    code = "task_not_resolved"


class InvalidTaskType(LithosError):
    """Not `task`, `epic` or `gate`."""

    code = "invalid_task_type"


class InvalidMetadataKey(LithosError):
    """`depends_on` or `blocked_on` in task metadata."""

    code = "invalid_metadata_key"


class InvalidEdgeType(LithosError):
    """Not a task edge type."""

    code = "invalid_edge_type"


class SelfEdge(LithosError):
    """A task linked to itself."""

    code = "self_edge"


class NotAGate(LithosError):
    """`waits_on_gate` from a task that is no gate."""

    code = "not_a_gate"


class Cycle(LithosError):
    """The edge would close a cycle."""

    code = "cycle"


class ParentExists(LithosError):
    """The child has another parent."""

    code = "parent_exists"


class InvalidRelationType(LithosError):
    """A spawn relation other than `discovered_from` or `blocks`."""

    code = "invalid_relation_type"
