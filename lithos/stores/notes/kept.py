"""Displaced files: unlinked once no program can be writing to them, recovered after a crash. It blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from contextlib import suppress

from lithos.stores.notes.system_calls import UNSUPPORTED, SystemCalls
from lithos.stores.notes.values import TEMPORARY_PREFIX, FileBusy, Kept, Place, is_temporary, parse_name
from lithos.stores.notes.watch import Watch

#: Seconds for a program that opened a file as it was being unlinked, to write and close it.
_LAST_PATIENCE = 2.0


#: Makes the bytes of a kept file durable elsewhere; raises `OSError`.
SaveBytes = Callable[[Kept, bytes], None]


def settle(calls: SystemCalls, kept: Kept, save: SaveBytes, *, leases: bool) -> None:
    """Unlink a kept file; unknown bytes, which another program wrote, are saved before.

    Raises `FileBusy` while a program writes to it: retry later. `FileNotFoundError` when it is gone.
    """
    with Watch(calls, kept.path, leases=leases) as watch:
        source = watch.read()
        if source.digest not in kept.known:
            if not watch.is_quiet():
                raise FileBusy(kept.path)
            save(kept, source.data)
        if not watch.is_still(kept.path, source.digest):
            raise FileBusy(kept.path)
        calls.unlink(kept.path)
        if watch.is_untouched():
            return
        watch.let_write(_LAST_PATIENCE)  # opened in this very moment, by a lookup begun a second ago
        last = watch.read()
        if last.digest != source.digest and last.digest not in kept.known:
            save(kept, last.data)


def recover_folder(
    calls: SystemCalls, folder: str, names: Collection[str], place: Place | None = None
) -> tuple[list[Kept], int]:
    """Crash recovery of one folder: returns the files to settle, and how many others were tidied up.

    Their notes are beside them, or those that the `place`, if it is that folder, says.

    Temporary files are removed, files aside get their names back. Run it before anything is changed.
    """
    kept: list[Kept] = []
    tidied = 0
    for name in sorted(names):
        path = os.path.join(folder, name)
        with suppress(OSError):  # one that cannot be removed stays: it is never taken for a note
            if is_temporary(name):
                calls.unlink(path)
                tidied += 1
                continue
        found = parse_name(name) if name.startswith(TEMPORARY_PREFIX) else None
        if found is None:
            continue
        note = os.path.join(folder, found.note or "unknown.md")
        if place is not None and found.note is not None:
            note = place.note_of(found.note)
        if found.kind == "aside" and found.note is not None and _go_back(calls, path, note):
            tidied += 1
            continue
        # What is aside of a note that has another file by now may be all that is left of its text.
        known = found.known if found.kind == "swap" else ()
        kept.append(Kept(path, note, known, is_leased=False))
    return kept, tidied


def _go_back(calls: SystemCalls, path: str, target: str) -> bool:
    """Rename an aside file back to its note without overwriting; whether that succeeded."""
    try:
        calls.rename_new(path, target)
    except FileExistsError:
        return False
    except OSError as failure:
        if failure.errno not in UNSUPPORTED:
            return False
        with suppress(OSError):
            calls.link(path, target)
            calls.unlink(path)
            return True
        return False
    return True
