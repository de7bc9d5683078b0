"""`--write` and `--remove`: the entry of this server put into a client's file, and taken out again.

Nothing of a person is lost in any order of writing, of edits by others, of removing and of writing again:
what is replaced is kept beside the file, and where somebody else changed the file, only the entry is touched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from attrs import field, frozen

from lithos.cli.connecting.clients import Client, Scope
from lithos.cli.connecting.files import (
    CannotUse,
    ChangedMeanwhile,
    ConfigFile,
    Keeper,
    Record,
    digest_of,
    make_folders,
    read_config,
    remove_config,
    remove_empty,
    replace_config,
)
from lithos.cli.connecting.target import Link, Target, Transport
from lithos.core.editing.json_edit import CannotEdit, Insertion
from lithos.core.editing.json_text import InvalidText

Action = Literal["connected", "updated", "already connected", "removed", "not connected"]
#: How deep a backup is compared with what the file has become: the servers under `mcp.servers`.
_KEY_DEPTH: Final = 3
#: Times that an edit is made anew, since the file changed while it was made.
_TRIES: Final = 5
#: Keys of entries that are written here; an entry with others has something of a person's.
_OUR_KEYS: Final = frozenset(
    ("type", "command", "args", "url", "httpUrl", "serverUrl", "headers", "transport", "enabled", "env")
) | {"bearer_token_env_var"}


class Refused(Exception):
    """The file stays as it is; says why and what to do."""


@frozen
class Place:
    """One entry of one client's file."""

    client: Client
    scope: Scope
    path: Path
    name: str


@frozen
class Outcome:
    """What was done; `backup` is the copy of what was there, `notes` are lines for the person."""

    action: Action
    path: Path
    link: Link | None = None
    backup: str | None = None
    notes: tuple[str, ...] = field(default=())


def wanted_entry(client: Client, target: Target, transport: Transport) -> dict[str, Any]:
    """The entry for this server. Raises `Refused` where the client cannot have it."""
    try:
        "".join(target.command).encode()
    except UnicodeEncodeError as error:
        raise Refused(
            f"{target.data} has a name that is not UTF-8, which no configuration can hold. Rename the folder."
        ) from error
    if transport == "stdio":
        return client.stdio(target)
    if client.http is None:
        raise Refused(f"{client.title} reaches servers on this machine over stdio only: --transport stdio.")
    if target.needs_token and not client.knows_variables:
        raise Refused(
            f"The server wants a token, and the configuration of {client.title} cannot refer to a variable: "
            "the token would have to stand in the file. Use --transport stdio, which needs none, or paste "
            f"what `lithos connect {client.name}` prints and put the token into it."
        )
    return client.http(target)


def write_entry(
    place: Place, entry: Mapping[str, Any], target: Target, environment: Mapping[str, str]
) -> Outcome:
    """Put the entry into the file, once. Raises `Refused`."""
    return _retried(place, target, environment, lambda edit: edit.write(entry))


def remove_entry(place: Place, target: Target, environment: Mapping[str, str]) -> Outcome:
    """Take the entry out of the file, with what was made for it. Raises `Refused`."""
    return _retried(place, target, environment, lambda edit: edit.remove())


def _retried(
    place: Place, target: Target, environment: Mapping[str, str], act: Callable[[_Edit], Outcome]
) -> Outcome:
    keeper = Keeper(place.path, place.name, environment)
    for _ in range(_TRIES):
        try:
            return act(_Edit(place, target, keeper, read_config(place.path), keeper.load()))
        except ChangedMeanwhile:
            continue
        except CannotUse as error:
            raise Refused(str(error)) from error
        except InvalidText as error:
            raise Refused(
                f"{place.path} is not valid, so it stays as it is: {error}. Correct it in an editor, "
                f"{place.client.title} has trouble with it as well; then try again."
            ) from error
        except CannotEdit as error:
            raise Refused(
                f"{place.path} stays as it is: {error} Edit it by hand: `lithos connect {place.client.name}` "
                "prints what belongs there."
            ) from error
    raise Refused(
        f"{place.path} was changed {_TRIES} times while it was edited. Close {place.client.title}, try again."
    )


@frozen
class _Edit:
    """One try: what is in the file now, and what is recorded of an entry that was written there."""

    place: Place
    target: Target
    keeper: Keeper
    file: ConfigFile
    record: Record | None

    def write(self, entry: Mapping[str, Any]) -> Outcome:
        place, name, form = self.place, self.place.name, self.place.client.format
        found = form.entries(self.file.text).get(name)
        entry = form.written(self.file.text, entry)
        link = Link.of(entry)
        assert link is not None
        if found is not None:
            there = self._check_owned(found, None)
            if there.is_as(link):
                notes = (f"It is switched off in {place.client.title}.",) if there.is_off else ()
                return Outcome("already connected", place.path, there, notes=notes)
            self._check_plain(found)
        base = self.file.data if found is None else self._without()
        text = _decode(base)
        piece = form.insert(text, name, entry)
        new = piece.apply(text)
        is_same = form.entries(new).get(name) == entry and form.is_same_but(text, new, name, piece.parents)
        if not is_same:
            raise CannotEdit("The entry could not be added without changing something else.")
        backup = self._swap(base, new.encode(), piece, dict(entry))
        if self.record is not None and self.record.backup != backup:
            self._drop_backup(self.record, base)
        return Outcome("connected" if found is None else "updated", place.path, link, backup)

    def _swap(self, base: bytes | None, data: bytes, piece: Insertion, entry: dict[str, Any]) -> str | None:
        """Back up, remember, replace; all of it, or nothing. Returns the backup."""
        old, keeper = self.record, self.keeper
        made = make_folders(self.file.real)
        # Of a file that was made here, the folders that were made with it.
        folders = old.folders if old is not None and base is None and not made else tuple(map(str, made))
        backup = None if base is None else str(keeper.back_up(base, old))
        record = Record(
            path=os.path.abspath(self.place.path),
            name=self.place.name,
            before=None if base is None else digest_of(base),
            after=digest_of(data),
            inserted=piece.text,
            parents=piece.parents,
            entry=entry,
            backup=backup,
            folders=folders,
        )
        try:
            # Before the file: a write that is cut short in between is found by its digest.
            keeper.store(record)
            replace_config(self.file, data)
        except (CannotUse, ChangedMeanwhile):
            if old is None or old.backup != backup:
                keeper.drop_backup(record)
            keeper.forget() if old is None else keeper.store(old)
            remove_empty(made)
            raise
        return backup

    def remove(self) -> Outcome:
        place = self.place
        found = place.client.format.entries(self.file.text).get(place.name)
        if found is None:  # somebody else took it out, or an earlier write was cut short
            kept = self._close(self.file.data)
            return Outcome("not connected", place.path, backup=kept, notes=_kept_notes(kept))
        link = self._check_owned(found, self.record)
        base = self._without()
        if base is None:
            remove_config(self.file, [Path(each) for each in self.record.folders] if self.record else [])
        else:
            replace_config(self.file, base)
        kept = self._close(base)
        return Outcome("removed", place.path, link, kept, _kept_notes(kept))

    def _close(self, left: bytes | None) -> str | None:
        """Drop the record, and the backup unless it has what the file has lost; tells what stays."""
        record = self.record
        if record is None:
            return None
        self._drop_backup(record, left)
        self.keeper.forget()
        return record.backup if record.backup is not None and os.path.exists(record.backup) else None

    def _drop_backup(self, record: Record, new: bytes | None) -> None:
        """Drop it, unless it has what `new`, the file or a newer backup, has not."""
        old = self.keeper.backup_of(record)
        if old is not None and self._covers(old, new):
            self.keeper.drop_backup(record)

    def _covers(self, old: bytes, new: bytes | None) -> bool:
        """Whether `new` has all keys of `old` down to the entries of servers, and all its lines of comments.

        Entries of this program do not count: they were written here, and taken out here.
        """
        if new is None:
            return not old.strip()
        if old == new:
            return True
        form = self.place.client.format
        try:
            text, left = _decode(old), form.entries(_decode(new))
            for name, entry in form.entries(text).items():
                link = Link.of(entry)
                if name not in left and link is not None and link.is_lithos:
                    text = form.remove(text, name)
            kept = _has_keys(form.tree(_decode(new)), form.tree(text), _KEY_DEPTH)
        except (InvalidText, CannotEdit, UnicodeDecodeError):
            return False
        return kept and _comments(old) <= _comments(new)

    def _check_owned(self, found: object, record: Record | None) -> Link:
        """The entry, if it is one for this server, or as it was written here. Raises `Refused`."""
        link = Link.of(found)
        is_ours = record is not None and found == record.entry
        if link is not None and (is_ours or link.points_to(self.target)):
            return link
        leads = f"to {link.place} over {link.transport}" if link else "nowhere that is understood here"
        raise Refused(
            f"The entry {self.place.name!r} in {self.place.path} leads {leads}, not to this server, so it "
            "stays as it is. Write this one under another name with --name, or take that one out first."
        )

    def _check_plain(self, found: object) -> None:
        others = sorted(set(found) - _OUR_KEYS) if isinstance(found, dict) else []
        if others:
            raise Refused(
                f"The entry {self.place.name!r} in {self.place.path} has settings of your own "
                f"({', '.join(others)}), which would be lost. Change it by hand, or take it out with "
                "--remove and write it again."
            )

    def _without(self) -> bytes | None:
        """The file without the entry: as it was where nobody else changed it; None for no file."""
        file, record, name, form = self.file, self.record, self.place.name, self.place.client.format
        assert file.data is not None
        if record is not None and digest_of(file.data) == record.after:
            if record.before is None:
                return None
            original = self.keeper.backup_of(record)
            if original is not None:
                return original
        left = self._cut(file.text)
        if left is None:
            left = form.remove(file.text, name)
            if not form.is_same_but(left, file.text, name):
                raise CannotEdit(
                    f"The entry {name!r} could not be taken out without changing something else."
                )
        if record is not None and record.before is None and not left.strip("\ufeff{} \t\r\n"):
            return None
        return left.encode()

    def _cut(self, text: str) -> str | None:
        """The text without what came in, if it is there just so."""
        record = self.record
        if record is None or text.count(record.inserted) != 1:
            return None
        left = text.replace(record.inserted, "")
        try:
            is_whole = self.place.client.format.is_same_but(left, text, self.place.name, record.parents)
        except (InvalidText, CannotEdit):
            return None
        return left if is_whole else None


def _kept_notes(kept: str | None) -> tuple[str, ...]:
    if kept is None:
        return ()
    return (f"The backup {kept} stays: it has settings that are not in the file any more.",)


def _has_keys(new: object, old: object, depth: int) -> bool:
    if not depth or not isinstance(old, dict):
        return True
    if not isinstance(new, dict):
        return False
    return all(key in new and _has_keys(new[key], value, depth - 1) for key, value in old.items())


def _comments(data: bytes) -> set[bytes]:
    lines = (line.strip() for line in data.split(b"\n"))
    return {line for line in lines if line.startswith((b"//", b"#", b"/*", b"*"))}


def _decode(data: bytes | None) -> str:
    return (data or b"").decode("utf-8")
