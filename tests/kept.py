"""A history in memory: every version that the writer writes, with its bytes, and what a test adds to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lithos.core.history.versions import VersionRow
from lithos.stores.notes.files import NoteFiles
from lithos.stores.notes.values import Put

_VERSION = re.compile(rb"^version: (\d+)\r?$", re.MULTILINE)
_ID = re.compile(rb"^id: (\S+?)\r?$", re.MULTILINE)


class KeptVersions:
    """A `VersionReader` as far as merging needs one."""

    def __init__(self) -> None:
        self.contents: dict[tuple[str, int], bytes] = {}
        #: Called before the next changes of files, then forgotten.
        self.before_next: Callable[[], None] | None = None

    def watch(self, patch: pytest.MonkeyPatch) -> KeptVersions:
        """Keep what any `NoteFiles` writes from now on."""
        write = NoteFiles.apply

        def apply(files: NoteFiles, operations: Sequence[Any]) -> Any:
            for operation in operations:
                if isinstance(operation, Put):
                    self.keep(operation.data)
            before, self.before_next = self.before_next, None
            if before is not None:
                before()
            return write(files, operations)

        patch.setattr(NoteFiles, "apply", apply)
        return self

    def keep(self, data: bytes, version: int | None = None) -> None:
        """Keep a file's bytes under the version that they say, or another one."""
        own, note_id = _VERSION.search(data), _ID.search(data)
        assert note_id is not None
        assert own is not None or version is not None
        self.contents[note_id[1].decode(), version or int(own[1] if own else 0)] = data

    def content(self, note_id: str, version: int) -> bytes | None:
        return self.contents.get((note_id, version))

    def row(self, note_id: str, version: int) -> VersionRow | None:
        raise NotImplementedError

    def current_at(self, note_id: str, at: Any) -> VersionRow | None:
        raise NotImplementedError

    def oldest(self, note_id: str) -> int | None:
        raise NotImplementedError

    def rows(self, note_id: str, limit: int, before: int | None = None) -> Any:
        raise NotImplementedError

    def recent(self, **_: Any) -> Any:
        raise NotImplementedError
