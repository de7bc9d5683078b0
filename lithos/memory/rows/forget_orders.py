"""Orders to delete remembered questions. A command stores them in `.lithos` for a server.

`lithos reconcile --forget-questions` writes files named `forget-questions-<random>.json`. The server deletes
each file after it has carried out the order.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import cattrs
from cattrs.preconf.json import make_converter

from lithos.kernel.databases.private_files import replace_file
from lithos.kernel.log import get_logger
from lithos.memory.model.questions import QuestionFilter

log = get_logger("lithos.questions")

_PREFIX = "forget-questions-"
_CONVERTER = make_converter()


class ForgetOrders:
    """The deletion orders that wait for a server. All methods block."""

    def __init__(self, private: Path) -> None:
        self._private = private

    def leave(self, wanted: QuestionFilter) -> str:
        """Write an order and return its name."""
        path = self._private / f"{_PREFIX}{uuid.uuid4().hex}.json"
        replace_file(path, json.dumps(_CONVERTER.unstructure(wanted)).encode())
        return path.name

    def waiting(self) -> list[str]:
        """Return the names of all waiting orders."""
        if not self._private.is_dir():
            return []
        return sorted(path.name for path in self._private.glob(f"{_PREFIX}*.json"))

    def read(self, name: str) -> QuestionFilter | None:
        """Return the content of an order. Return None if the file is missing or unreadable."""
        try:
            return _CONVERTER.structure(json.loads((self._private / name).read_bytes()), QuestionFilter)
        except (OSError, ValueError, TypeError, cattrs.BaseValidationError) as failure:
            log.error("unreadable order deleted", file=name, reason=str(failure))
            return None

    def is_waiting(self, name: str) -> bool:
        """Return whether an order is still waiting for a server."""
        return (self._private / name).exists()

    def settle(self, name: str) -> None:
        """Delete the file of a finished order."""
        (self._private / name).unlink(missing_ok=True)
