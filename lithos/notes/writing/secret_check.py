"""Check of changes for secrets that an agent writes into a note (setting `storage.secrets`).

A warning and an error name the line and the kind of a secret, never its value. Text that a person writes, approves,
imports or restores is not checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, Literal

import attrs
from attrs import frozen

from lithos.kernel.actors.threads import Blocking
from lithos.kernel.values.errors import InvalidInput
from lithos.notes.files.values import Put, ReadFile
from lithos.notes.writing.messages import EditNote, PatchNote, WriteNote, WriteRequest
from lithos.notes.writing.preparation import Prepared
from lithos.text.secrets.changes import added_secrets

#: How secrets in new text are treated.
Secrets = Literal["warn", "refuse", "off"]
#: Maximum number of secrets that an answer names.
MOST: Final = 5
#: Maximum number of bytes in a file that is examined on the event loop (about 3 ms).
ON_LOOP: Final = 64 * 1024


@frozen
class SecretCheck:
    """Check of prepared changes. `mode` is the setting `storage.secrets`."""

    mode: Secrets = "off"

    async def check(
        self, request: WriteRequest, prepared: Prepared, source: object, blocking: Blocking
    ) -> Prepared:
        """Return the change with its warnings. Raises `InvalidInput` if secrets are refused."""
        if not self._concerns(request) or not isinstance(prepared.operation, Put):
            return prepared
        old, new = _bytes_of(source), prepared.operation.data
        if len(new) <= ON_LOOP:
            return self._judged(prepared, added_secrets(old, new))
        return self._judged(prepared, await blocking.run(partial(added_secrets, old, new)))

    def check_next(self, request: WriteRequest, prepared: Prepared, source: ReadFile) -> Prepared:
        """Check an edit that is written together with the edit before it, as `check` does."""
        if not self._concerns(request) or not isinstance(prepared.operation, Put):
            return prepared
        return self._judged(prepared, added_secrets(source.data, prepared.operation.data))

    def _concerns(self, request: WriteRequest) -> bool:
        if self.mode == "off" or not isinstance(request, WriteNote | EditNote | PatchNote):
            return False
        is_own = request.by is not None and request.by.is_own
        return not is_own and getattr(request, "approval", None) is None

    def _judged(self, prepared: Prepared, found: Sequence[tuple[int, str]]) -> Prepared:
        if not found:
            return prepared
        path = prepared.entry.path
        places = [f"line {line} looks like a {kind}" for line, kind in found[:MOST]]
        more = f", and {len(found) - MOST} more" if len(found) > MOST else ""
        told = f"{', '.join(places)}{more}"
        if self.mode == "refuse":
            raise InvalidInput(
                f"The text seems to contain secrets, and storage.secrets is `refuse`: in {path[:200]}, {told}. "
                "Nothing was changed. Leave the value out and write where it is kept, for example the name of "
                "an environment variable.",
                secrets=[{"line": line, "kind": kind} for line, kind in found[:MOST]],
            )
        warning = f"secret_suspected: in {path[:200]}, {told}. If it is real, remove it and revoke it."
        outcome = attrs.evolve(prepared.outcome, warnings=(*prepared.outcome.warnings, warning))
        return attrs.evolve(prepared, outcome=outcome)


def _bytes_of(source: object) -> bytes:
    return source.data if isinstance(source, ReadFile) else b""
