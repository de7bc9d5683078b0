"""Permission rules in a file of a client: Lithos adds them, renews them, and takes out exactly those.

A record next to the file (`FILE.lithos-rules`) names the rules that Lithos added, and has the content of the
file from before. A rule that a person wrote is therefore never taken out, and a file that no other program
changed is restored byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import evolve, frozen

from lithos.clients.connect.files import (
    DEFAULT_NAME,
    CannotUse,
    ChangedMeanwhile,
    ConfigFile,
    encode_like,
    read_config,
    replace_config,
    save_private,
)
from lithos.clients.connect.formats import Format, is_bare

#: A rule as a key and its value. In a list, the key is empty.
Rule = tuple[str, Any]

RECORD_SUFFIX: Final = ".lithos-rules"
#: Maximum number of attempts to edit the file if other programs change it meanwhile.
_TRIES: Final = 5


@frozen
class AddedRules:
    """The rules for one server: the name of its entry, and the keys that lead to the rules in the file."""

    name: str
    at: tuple[str, ...]
    rules: tuple[Rule, ...]


@frozen
class RuleRecord:
    """The rules that Lithos added to a file for all servers, and the content of the file without them."""

    parts: tuple[AddedRules, ...] = ()
    #: None if there was no file.
    before: str | None = None

    @classmethod
    def read(cls, data: bytes) -> RuleRecord:
        """Return the record in a file of Lithos. Raises `ValueError`, `LookupError` or `TypeError`."""
        stored = json.loads(data)
        before = stored["before"]
        if not isinstance(before, str | None):
            raise TypeError("before")
        parts = (
            AddedRules(str(name), tuple(map(str, at)), tuple((str(key), value) for key, value in rules))
            for name, at, rules in stored["added"]
        )
        return cls(tuple(parts), before)

    @property
    def data(self) -> bytes:
        """The content of the file of the record."""
        added = [(part.name, part.at, part.rules) for part in self.parts]
        return json.dumps({"added": added, "before": self.before}, ensure_ascii=False).encode()

    def rules_at(self, place: RulePlace) -> tuple[Rule, ...]:
        """Return the rules that Lithos added at this place."""
        found = (part.rules for part in self.parts if (part.name, part.at) == (place.name, place.form.path))
        return next(found, ())

    def others(self, place: RulePlace) -> tuple[AddedRules, ...]:
        """Return the rules at all other places of the file."""
        return tuple(part for part in self.parts if (part.name, part.at) != (place.name, place.form.path))


@frozen
class RulePlace:
    """The place of the rules for one server: the object that `form` finds in the file at `path`.

    Each rule is a key of this object, or an item of its list `list_key`.
    """

    path: Path
    form: Format
    list_key: str = ""
    #: Name of the entry of the server.
    name: str = DEFAULT_NAME

    def put(
        self, data: bytes | None, parts: Iterable[AddedRules]
    ) -> tuple[bytes | None, tuple[AddedRules, ...]]:
        """Return the content with the missing rules added, and the rules that were missing.

        Raises `CannotUse` and `CannotEdit`.
        """
        text, added = self._text(data), list[AddedRules]()
        for part in parts:
            place = self._for(part)
            rules = place._missing(text, part.rules)
            if rules:
                text = place._added(text, rules)
                added.append(evolve(part, rules=rules))
        return (encode_like(text, data) if added else data), tuple(added)

    def without(self, data: bytes | None, record: RuleRecord) -> bytes | None:
        """Return the content without the rules in the record, or None if no file should remain.

        Raises `CannotUse` and `CannotEdit`.
        """
        if data is None or not record.parts:
            return data
        before = None if record.before is None else record.before.encode()
        if self.put(before, record.parts)[0] == data:
            return before
        text = self._text(data)
        for part in record.parts:
            text = self._for(part)._taken_out(text, part.rules, self._text(before))
        is_ours = before is None and is_bare(self.form.tree(text)) and "#" not in text
        return None if is_ours else encode_like(text, data)

    def read_record(self) -> RuleRecord:
        """Return the record of the file. Raises `CannotUse` if it is damaged."""
        data = read_config(self._record).data
        if data is None:
            return RuleRecord()
        try:
            return RuleRecord.read(data)
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise CannotUse(
                f"{self._record} is damaged, so the rules in {self.path} are unchanged. Delete it, and "
                "remove the rules for Lithos in an editor."
            ) from error

    def save_record(self, record: RuleRecord) -> None:
        """Store the record. A record without rules deletes the file. Raises `CannotUse`."""
        save_private(self._record, record.data if record.parts else None)

    def with_rules(self, rules: Iterable[Rule]) -> AddedRules:
        """Return the rules together with this place."""
        return AddedRules(self.name, self.form.path, tuple(rules))

    @property
    def _record(self) -> Path:
        return self.path.with_name(f"{self.path.name}{RECORD_SUFFIX}")

    def _for(self, part: AddedRules) -> RulePlace:
        return evolve(self, form=evolve(self.form, path=part.at), name=part.name)

    def _text(self, data: bytes | None) -> str:
        return ConfigFile(self.path, self.path, data).text

    def _held(self, text: str) -> tuple[Rule, ...]:
        found = self.form.entries(text)
        if not self.list_key:
            return tuple(found.items())
        items = found.get(self.list_key, [])
        if not isinstance(items, list):
            raise CannotUse(f"`{self.list_key}` in {self.path} is not a list, so it is unchanged.")
        return tuple(("", item) for item in items)

    def _missing(self, text: str, rules: Iterable[Rule]) -> tuple[Rule, ...]:
        """Return the rules without a counterpart in the text. A person's own value for a key stays."""
        held = self._held(text)
        if self.list_key:
            return tuple(rule for rule in rules if rule not in held)
        keys = {key for key, _ in held}
        return tuple(rule for rule in rules if rule[0] not in keys)

    def _added(self, text: str, rules: Iterable[Rule]) -> str:
        if self.list_key:
            items = [item for _, item in (*self._held(text), *rules)]
            return self.form.edit(text, self.list_key, items)
        for key, value in rules:
            text = self.form.edit(text, key, value)
        return text

    def _taken_out(self, text: str, rules: Sequence[Rule], before: str) -> str:
        keep, held = self.form.tree(before), self._held(text)
        if not self.list_key:
            for key, _ in [rule for rule in rules if rule in held]:
                text = self.form.edit(text, key, None, keep)
            return text
        left = [item for _, item in held if ("", item) not in rules]
        if len(left) == len(held):
            return text
        was_there = self.list_key in self.form.entries(before)
        return self.form.edit(text, self.list_key, left if left or was_there else None, keep)


@frozen
class HeldRules:
    """A file whose rules are put aside while Lithos changes other content."""

    file: ConfigFile
    place: RulePlace | None = None
    record: RuleRecord = RuleRecord()

    @classmethod
    def of(cls, file: ConfigFile, place: RulePlace | None) -> HeldRules:
        """Return the file with its rules. Raises `CannotUse` and `CannotEdit`."""
        if place is None or place.path != file.path:
            return cls(file)
        return cls(file, place, place.read_record())

    @property
    def bare(self) -> ConfigFile:
        """The file as if Lithos had added no rules. Raises `CannotUse` and `CannotEdit`."""
        if self.place is None or not self.record.parts:
            return self.file
        return evolve(self.file, data=self.place.without(self.file.data, self.record))

    def replace(self, data: bytes | None) -> None:
        """Replace the content of the file, and put the rules back. Raises the errors of `replace_config`."""
        if self.place is None or not self.record.parts:
            replace_config(self.file, data)
            return
        _replace(self.place, self.file, data, self.record.parts, self.record)


def allow(place: RulePlace, rules: Iterable[Rule]) -> bool:
    """Add the rules to the file, and take out older rules of Lithos. Return whether the file changed.

    Raises `CannotUse` and `CannotEdit`.
    """
    wanted = place.with_rules(rules)
    return _change(place, lambda record: (*record.others(place), wanted))


def disallow(place: RulePlace) -> tuple[Rule, ...]:
    """Take the rules of Lithos out of the file, and return them. Raises `CannotUse` and `CannotEdit`."""
    rules = place.read_record().rules_at(place)
    if rules:
        _change(place, lambda record: record.others(place))
    return rules


def _change(place: RulePlace, choose: Callable[[RuleRecord], Iterable[AddedRules]]) -> bool:
    """Let the file have the rules that `choose` returns. Return whether the file changed."""
    for _ in range(_TRIES):
        file, record = read_config(place.path), place.read_record()
        try:
            return _replace(place, file, place.without(file.data, record), choose(record), record)
        except ChangedMeanwhile:
            continue
    raise CannotUse(
        f"{place.path} was changed {_TRIES} times while it was edited. Close the client, then try again."
    )


def _replace(
    place: RulePlace, file: ConfigFile, bare: bytes | None, parts: Iterable[AddedRules], old: RuleRecord
) -> bool:
    """Write the content with the rules. The record comes first, so that a crash leaves no unknown rule."""
    new, added = place.put(bare, parts)
    if new == file.data and added == old.parts:
        return False
    place.save_record(RuleRecord(added, None if bare is None else bare.decode()))
    try:
        if new != file.data:
            replace_config(file, new)
    except (CannotUse, ChangedMeanwhile):
        place.save_record(old)
        raise
    return new != file.data
