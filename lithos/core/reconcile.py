"""What reconciling derived state found and did, scope by scope (cli-config spec, section 2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from attrs import field, frozen

INDICES: Final = "indices"
GRAPH: Final = "graph"
PROVENANCE: Final = "provenance_projection"
SCOPES: Final = (INDICES, GRAPH, PROVENANCE)
#: What failures of a scope are called.
FAILURE_CODES: Final[Mapping[str, str]] = {
    INDICES: "index_rebuild_failed",
    GRAPH: "graph_rebuild_failed",
    PROVENANCE: "projection_apply_failed",
}
INTERNAL_ERROR: Final = "internal_error"


@frozen
class Action:
    """One thing that was repaired, or would be; with `is_repair` false it is only told."""

    reason: str
    details: Mapping[str, Any] = field(factory=dict)
    is_repair: bool = True
    #: How many things it stands for.
    count: int = 1


@frozen
class Failure:
    """Something that could not be repaired, and why."""

    code: str
    detail: str


@frozen(kw_only=True)
class ScopeResult:
    """The envelope of one scope; `scanned` counts notes."""

    scope: str
    dry_run: bool
    supported: bool = True
    scanned: int = 0
    skipped: int = 0
    actions: tuple[Action, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def repaired(self) -> int:
        """How many things were repaired; none in a dry run."""
        return 0 if self.dry_run else sum(action.count for action in self.actions if action.is_repair)

    @property
    def status(self) -> Literal["ok", "noop", "partial_failure", "failed"]:
        """`ok` when something was repaired, or in a dry run would be."""
        if self.failures:
            return "partial_failure" if self.repaired else "failed"
        return "ok" if any(action.is_repair for action in self.actions) else "noop"

    @property
    def has_failed(self) -> bool:
        """Whether anything went wrong."""
        return bool(self.failures)

    def as_json(self) -> dict[str, Any]:
        """The envelope as printed."""
        return {
            "scope": self.scope,
            "dry_run": self.dry_run,
            "supported": self.supported,
            "status": self.status,
            "summary": {
                "scanned": self.scanned,
                "repaired": self.repaired,
                "failed": len(self.failures),
                "skipped": self.skipped,
            },
            "actions": [
                {"reason": action.reason, "count": action.count, **action.details} for action in self.actions
            ],
            "failures": [{"code": failure.code, "detail": failure.detail} for failure in self.failures],
        }
