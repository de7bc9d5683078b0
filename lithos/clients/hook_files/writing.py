"""`lithos connect CLIENT --hooks`: write the hooks of Lithos into a client's file, and remove them again.

The file keeps every other setting. A backup next to the file has the bytes from before the hooks were added.
From it, `--remove` restores a file that no program has changed since.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from lithos.clients.connect.files import (
    CannotUse,
    ChangedMeanwhile,
    ConfigFile,
    back_up,
    find_backups,
    read_config,
    replace_config,
)
from lithos.clients.connect.formats import CannotEdit
from lithos.clients.hook_files.formats import HookFormat, IsOurs
from lithos.clients.hook_files.places import HookFile
from lithos.clients.hooks.entries import Hooks

Action = Literal["installed", "updated", "already installed", "removed", "not installed"]
#: Name of the backups. No entry of a server can have this name, because it has a dot.
_NAME: Final = "lithos.hooks"
#: Text in every file with hooks of Lithos.
_MARK: Final = b"--hook"
#: Maximum number of attempts to edit the file if other programs change it meanwhile.
_TRIES: Final = 5


class HookChange(NamedTuple):
    """The result of an action. `kept` are backups with settings that the file no longer has."""

    action: Action
    kept: Sequence[Path] = ()


def change_hooks(file: HookFile, hooks: Hooks | None, is_ours: IsOurs) -> HookChange:
    """Write the hooks, or remove them if `hooks` is None.

    Raises `CannotUse`, and `CannotEdit` for a text that must not be changed.
    """
    for _ in range(_TRIES):
        try:
            edit = _HookEdit(file.form, read_config(file.path), find_backups(file.path, _NAME), is_ours)
            return edit.remove() if hooks is None else edit.write(hooks)
        except ChangedMeanwhile:
            continue
    raise CannotUse(
        f"{file.path} was changed {_TRIES} times while it was edited. Close the client, then try again."
    )


class _HookEdit(NamedTuple):
    """One attempt to edit a file."""

    form: HookFormat
    file: ConfigFile
    backups: Mapping[Path, bytes]
    is_ours: IsOurs

    def write(self, hooks: Hooks) -> HookChange:
        found = self.form.found(self.file.text, self.is_ours)
        if found == hooks:
            return HookChange("already installed")
        base = self._before(found)
        new = self._encode(self.form.added(_decode(base), hooks))
        backup = None if base is None else back_up(self.file.path, _NAME, base, self.backups)
        try:
            replace_config(self.file, new)
        except (CannotUse, ChangedMeanwhile):
            if backup is not None and backup not in self.backups:
                backup.unlink(missing_ok=True)
            raise
        return HookChange("updated" if found else "installed")

    def remove(self) -> HookChange:
        # A file without hooks of Lithos need not be valid.
        has_any = _MARK in (self.file.data or b"")
        found = self.form.found(self.file.text, self.is_ours) if has_any else {}
        left = self._before(found)
        if found:
            replace_config(self.file, left)
        for path, data in self.backups.items():
            if self._is_covered(data, left):
                path.unlink(missing_ok=True)
        kept = [path for path in self.backups if path.exists()]
        return HookChange("removed" if found else "not installed", kept)

    def _before(self, found: Hooks) -> bytes | None:
        """Return the content without the hooks of Lithos. If no file should remain, return None."""
        if not found:
            return self.file.data
        for data in self.backups.values():
            try:
                if self._encode(self.form.added(_decode(data), found)) == self.file.data:
                    return data
            except (CannotEdit, UnicodeDecodeError):
                continue
        left = self.form.removed(self.file.text, self.is_ours, self._oldest_text())
        return None if not self.backups and self.form.is_bare(left) else self._encode(left)

    def _oldest_text(self) -> str:
        """Return the text of the newest backup that is readable, or "" without one."""
        for data in self.backups.values():
            try:
                self.form.found(_decode(data), self.is_ours)
            except (CannotEdit, UnicodeDecodeError):
                continue
            return _decode(data)
        return ""

    def _is_covered(self, old: bytes, new: bytes | None) -> bool:
        if new is None or new == old:
            return new == old or not old.strip()
        try:
            return self.form.covers(_decode(new), _decode(old))
        except (CannotEdit, UnicodeDecodeError):
            return False

    def _encode(self, text: str) -> bytes:
        has_mark = (self.file.data or b"").startswith(BOM_UTF8)
        return text.encode("utf-8-sig" if has_mark else "utf-8")


def _decode(data: bytes | None) -> str:
    return (data or b"").decode("utf-8-sig")
