"""The options `--write` and `--remove`, which add the entry of this server to a client's file and remove it.

Settings of the user are never lost, in whatever order the file is written, edited by other programs, and
restored. Backups next to the file contain the bytes from before an entry was added. If the file was edited
since the last write, only the entry changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from attrs import field, frozen

from lithos.clients.connect.clients import PROJECT_HEADER, Client, ConfigScope
from lithos.clients.connect.files import (
    CannotUse,
    ChangedMeanwhile,
    ConfigFile,
    back_up,
    encode_like,
    find_backups,
    read_config,
)
from lithos.clients.connect.formats import CannotEdit, ConfigEntry, HasComments, InvalidText, is_bare
from lithos.clients.connect.rule_files import HeldRules, RulePlace
from lithos.clients.connect.target import TRANSPORTS, ConnectTarget, ServerLink, Transport

Action = Literal["connected", "updated", "already connected", "removed", "not connected"]
#: Depth to which the keys of a backup are compared with the current file. It includes the servers under
#: `mcp.servers`.
_KEY_DEPTH: Final = 3
#: Maximum number of attempts to edit the file if other programs change it meanwhile.
_TRIES: Final = 5
#: Keys that Lithos writes into entries. All other keys in an entry are settings of the user.
_OUR_KEYS: Final = frozenset(
    ("type", "command", "args", "url", "httpUrl", "serverUrl", "headers", "transport", "enabled", "env")
) | {"bearer_token_env_var", "tools"}


class ConfigRefused(Exception):
    """Raised if the file must not be changed. The message contains the reason and the next step."""


@frozen
class ClientEntry:
    """The place of an entry in the configuration file of a client."""

    client: Client
    scope: ConfigScope
    path: Path
    name: str


@frozen
class ConnectResult:
    """The result of an action.

    `backup` is the path of the copy of the old file, and `notes` are lines for the user.
    """

    action: Action
    link: ServerLink | None = None
    backup: str | None = None
    notes: tuple[str, ...] = field(default=())


def wanted_entry(
    client: Client, target: ConnectTarget, transport: Transport, project: str | None = None
) -> dict[str, Any]:
    """Return the entry for this server, with a header for the `project`.

    Raises `ConfigRefused` if the client cannot use the entry.
    """
    try:
        "".join(target.command).encode()
    except UnicodeEncodeError as error:
        raise ConfigRefused(
            f"{target.data} has a name that is not UTF-8, which no configuration can contain. "
            "Rename the folder."
        ) from error
    entry = client.entry(target, transport, project)
    if entry is None:
        raise ConfigRefused(
            f"{client.title} connects to servers on this machine only over stdio. Use --transport stdio."
        )
    if transport == "http" and target.needs_token and not client.knows_variables:
        raise ConfigRefused(
            f"The server requires a token, and the configuration of {client.title} cannot refer to a "
            "variable, so the file would contain the token. Use --transport stdio, which needs no token, or "
            f"paste the output of `lithos connect {client.name}` and add the token to it."
        )
    return entry


def change_entry(
    place: ClientEntry, entry: ConfigEntry | None, target: ConnectTarget, rules: RulePlace | None = None
) -> ConnectResult:
    """Add or replace the entry in the file.

    If `entry` is None, remove the entry and the objects created for it. If Lithos wrote `rules` into the same
    file, they do not count as part of the file, and stay in it.

    Raises `ConfigRefused`. Raises `HasComments` for a file with comments, which is never rewritten.
    """
    for _ in range(_TRIES):
        try:
            backups = find_backups(place.path, place.name)
            held = HeldRules.of(read_config(place.path), rules)
            edit = _Edit(place, target, held.bare, held, backups)
            return edit.remove() if entry is None else edit.write(entry)
        except ChangedMeanwhile:
            continue
        except CannotUse as error:
            raise ConfigRefused(str(error)) from error
        except InvalidText as error:
            raise ConfigRefused(
                f"{place.path} is not valid, so it is unchanged: {error}. {place.client.title} "
                "cannot read it either. Correct it in an editor, then try again."
            ) from error
        except HasComments:
            raise
        except CannotEdit as error:
            raise ConfigRefused(
                f"{place.path} is unchanged: {error} Edit it by hand: `lithos connect "
                f"{place.client.name}` prints the entry."
            ) from error
    raise ConfigRefused(
        f"{place.path} was changed {_TRIES} times while it was edited. Close "
        f"{place.client.title}, then try again."
    )


@frozen
class _Edit:
    """One attempt to edit a file: the file's content, and the backups from before an entry with this name.

    `file` does not contain the rules, and `held` puts them back when the file is replaced.
    """

    place: ClientEntry
    target: ConnectTarget
    file: ConfigFile
    held: HeldRules
    backups: Mapping[Path, bytes]

    def write(self, entry: ConfigEntry) -> ConnectResult:
        place, form, text = self.place, self.place.client.format, self.file.text
        found = form.entries(text).get(place.name)
        wanted = entry = form.written(text, entry)
        link = ServerLink.of(entry)
        assert link is not None
        base = self.file.data
        if found is not None:
            there = self._check_owned(found)
            entry = self._completed(found, entry, is_same=there.is_as(link))
            if entry == found:
                notes = tuple(self._own_choices(entry, wanted))
                return ConnectResult("already connected", there, notes=notes)
            base = self._before(found, None if self._is_written_here(found) else found)
        new = self._encode(form.edit(_decode(base), place.name, entry))
        backup = None if base is None else back_up(place.path, place.name, base, self.backups)
        try:
            self.held.replace(new)
        except (CannotUse, ChangedMeanwhile):
            if backup is not None and backup not in self.backups:
                backup.unlink(missing_ok=True)
            raise
        self._drop_backups(base, but=backup)
        action: Action = "connected" if found is None else "updated"
        notes = tuple(self._own_choices(entry, wanted))
        return ConnectResult(action, link, None if backup is None else str(backup), notes)

    def remove(self) -> ConnectResult:
        place, left = self.place, self.file.data
        found = place.client.format.entries(self.file.text).get(place.name)
        link = None
        # If no entry is found, another program removed the entry, or a write was interrupted.
        if found is not None:
            link = self._check_owned(found)
            left = self._before(found, None)
            self.held.replace(left)
        kept = [str(path) for path in self._drop_backups(left)]
        notes = [
            f"The backup {path} is kept, because it has settings that are missing from the file."
            for path in kept
        ]
        action: Action = "removed" if found is not None else "not connected"
        return ConnectResult(action, link, kept[0] if kept else None, tuple(notes))

    def _before(self, found: ConfigEntry, previous: ConfigEntry | None) -> bytes | None:
        """Return the content of the file without the written entry. If no file should remain, return None.

        `previous` is the entry to restore. An entry in a backup takes precedence over it.
        """
        name, form, text = self.place.name, self.place.client.format, self.file.text
        same = self._unchanged(found)
        if same is not None:
            return same
        keep = form.tree(text)
        for data in self.backups.values():
            try:
                keep, previous = form.tree(_decode(data)), form.entries(_decode(data)).get(name)
            except (CannotEdit, UnicodeDecodeError):
                continue
            break
        if previous is not None:
            return self._encode(form.edit(text, name, previous)) if previous != found else self.file.data
        left = form.edit(text, name, None, keep)
        return (
            None if not self.backups and is_bare(form.tree(left)) and "#" not in left else self._encode(left)
        )

    def _unchanged(self, found: ConfigEntry) -> bytes | None:
        """Return the backup that differs from the file only in the entry, or None. All bytes are compared."""
        name, form = self.place.name, self.place.client.format
        for data in self.backups.values():
            try:
                if self._encode(form.edit(_decode(data), name, found)) == self.file.data:
                    return data
            except (CannotEdit, UnicodeDecodeError):
                continue
        return None

    def _encode(self, text: str) -> bytes:
        return encode_like(text, self.file.data)

    def _drop_backups(self, left: bytes | None, but: Path | None = None) -> Sequence[Path]:
        """Delete the backups whose content is in the file. Return the paths of the remaining backups."""
        for path, data in self.backups.items():
            if path != but and self._covers(data, left):
                path.unlink(missing_ok=True)
        return [path for path in self.backups if path.exists()]

    def _covers(self, old: bytes, new: bytes | None) -> bool:
        """Return whether `new` contains all comments of `old`, and all its keys down to the server entries.

        Entries that start Lithos are not compared, because Lithos writes and removes them itself.
        """
        if new is None or old == new:
            return old == new or not old.strip()
        form = self.place.client.format
        try:
            missing = _settings(form.tree(_decode(old))) - _settings(form.tree(_decode(new)))
        except (CannotEdit, UnicodeDecodeError):
            return False
        return not missing and _comments(old) <= _comments(new)

    def _is_written_here(self, found: ConfigEntry) -> bool:
        """Return whether Lithos would write exactly this entry for this server, over stdio or over HTTP."""
        client, text = self.place.client, self.file.text
        made = [client.entry(self.target, way) for way in TRANSPORTS]
        ours = [self._bare(client.format.written(text, entry)) for entry in made if entry is not None]
        return self._bare(found) in ours

    def _check_owned(self, found: Any) -> ServerLink:
        """Return the link of the entry, if it leads to this server or Lithos wrote the entry.

        Raises `ConfigRefused` for all other entries.
        """
        link = ServerLink.of(found)
        if link is not None and (link.points_to(self.target) or self._unchanged(found) is not None):
            return link
        leads = f"to {link.place} over {link.transport}" if link else "to an unknown target"
        raise ConfigRefused(
            f"The entry {self.place.name!r} in {self.place.path} leads {leads}, not to this "
            "server, so it is unchanged. Use another name with --name, or remove that entry "
            "first."
        )

    @property
    def _switch(self) -> ConfigEntry:
        """The switch for tools on the first turn, if this file can contain it."""
        return switch_of(self.place.client, self.file.text)

    def _completed(self, found: ConfigEntry, entry: ConfigEntry, *, is_same: bool) -> ConfigEntry:
        """Return the entry to write in place of `found`, with the user's value of the switch.

        If both reach the server in the same way (`is_same`), every value of `found` is kept. An entry of an
        older Lithos gets the switch and the project. Raises `ConfigRefused` if settings would be lost.
        """
        if not is_same:
            self._check_plain(found, entry)
            return {**entry, **{each: found[each] for each in self._switch if each in found}}
        key = self.place.client.headers
        more = {each: entry[each] for each in self._switch}
        if PROJECT_HEADER in self._headers(entry) and PROJECT_HEADER not in self._headers(found):
            headers = {**self._headers(found), PROJECT_HEADER: entry[key][PROJECT_HEADER]}
            found = {**found, key: headers}
        return {**found, **{each: value for each, value in more.items() if each not in found}}

    def _headers(self, entry: ConfigEntry) -> Mapping[str, Any]:
        found = entry.get(self.place.client.headers)
        return found if isinstance(found, dict) else {}

    def _bare(self, entry: ConfigEntry) -> ConfigEntry:
        """Return the entry as Lithos wrote it before it knew the switch and projects."""
        bare = {key: value for key, value in entry.items() if key not in self._switch}
        left = {name: value for name, value in self._headers(bare).items() if name != PROJECT_HEADER}
        bare.pop(self.place.client.headers, None)
        return {**bare, self.place.client.headers: left} if left else bare

    def _own_choices(self, entry: ConfigEntry, wanted: ConfigEntry) -> Iterator[str]:
        """Yield a line for each value of the user in `entry` that changes the effect of the entry."""
        title, link = self.place.client.title, ServerLink.of(entry)
        if link is not None and link.is_off:
            yield f"The entry is switched off in {title}."
        for key, value in self._switch.items():
            if key in entry and entry[key] != value:
                yield (
                    f"`{key}` stays {json.dumps(entry[key])} in the entry, as you set it, so {title} may "
                    f"hide the tools on the first turn. Set it to {json.dumps(value)} to show them."
                )
        named, here = (self._headers(each).get(PROJECT_HEADER) for each in (entry, wanted))
        if named != here is not None:
            yield (
                f"The entry still names the project {named}, but this folder belongs to {here}. To change "
                "this, remove the entry with --remove and write it again."
            )

    def _check_plain(self, found: Mapping[str, Any], entry: ConfigEntry) -> None:
        # `tools` may be a choice of the user's own, such as a list of names.
        known = {*_OUR_KEYS, *self._switch, "http_headers"} - {"tools"}
        others = sorted(key for key in found if key not in known and found[key] != entry.get(key))
        if others:
            raise ConfigRefused(
                f"The entry {self.place.name!r} in {self.place.path} has settings of your own "
                f"({', '.join(others)}), which would be lost. Change it by hand, or remove it "
                "with --remove and write it again."
            )


def switch_of(client: Client, text: str) -> ConfigEntry:
    """Return the switch that shows the tools on the first turn, as far as this file can contain it."""
    return client.format.written(text, client.switch)


def _settings(tree: object, depth: int = _KEY_DEPTH) -> set[tuple[str, ...]]:
    """Return the paths of the keys in a tree down to `depth`. Entries that start Lithos are left out."""
    if not depth or not isinstance(tree, dict):
        return {()}
    others = [key for key, value in tree.items() if not _starts_lithos(value, depth)]
    return {()} | {(key, *rest) for key in others for rest in _settings(tree[key], depth - 1)}


def _starts_lithos(value: object, depth: int) -> bool:
    """Return whether the value is an entry that starts Lithos, or an object with only such entries.

    At most `depth` levels of the value are searched.
    """
    link = ServerLink.of(value)
    if link is not None or not isinstance(value, dict):
        return link is not None and link.is_lithos
    return depth > 0 and bool(value) and all(_starts_lithos(inner, depth - 1) for inner in value.values())


def _comments(data: bytes) -> set[bytes]:
    return {comment.strip() for comment in re.findall(rb"#[^\n]*", data)}


def _decode(data: bytes | None) -> str:
    return (data or b"").decode("utf-8-sig")
