"""Task metadata: what may be in it, and how a patch changes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lithos.core.errors import InvalidMetadataKey
from lithos.core.gates import normalise_gate_metadata
from lithos.core.tasks import FORBIDDEN_METADATA


def check_keys(patch: Mapping[str, Any] | None) -> None:
    """Raises `InvalidMetadataKey` for what the task graph replaced, whatever its value."""
    for key in FORBIDDEN_METADATA:
        if key in (patch or {}):
            raise InvalidMetadataKey(
                f"metadata.{key} is not used. Relate tasks with depends_on at creation or "
                "lithos_task_edge_upsert."
            )


def merge_metadata(task_type: str, old: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Merged per key; a null deletes a key. Raises `InvalidInput` where a gate would not stay valid."""
    merged = {**old, **patch}
    kept = {key: value for key, value in merged.items() if value is not None or key not in patch}
    return normalise_gate_metadata(kept) if task_type == "gate" else kept
