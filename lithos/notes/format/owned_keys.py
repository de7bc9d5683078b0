"""The owners of frontmatter keys: Lithos or a person.

A key with a Lithos name belongs to Lithos only if its value is valid for Lithos. `version: 1.4.2`, `status:
reading` and `id: intro` belong to the person, like any unknown key. Lithos then uses a second key, the name
with the prefix `lithos_`. This second key also shows that the key without the prefix belongs to the person.
In a person's vault, `version`, `updated_at` and `source` belong to Lithos only if the note has an id, a
version and an update time from Lithos. Such notes were created by Lithos, or changed by an earlier version of
Lithos.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import yaml
from attrs import frozen

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.ids import is_id
from lithos.notes.format.tolerant_reading import heal_older, heal_own, is_older_source
from lithos.notes.model.note import OWNED_KEYS
from lithos.text.yaml.nodes import UnreadableNote, ValueReader, is_null, read_mapping, write_entry

#: Prefix of the key that Lithos uses if a person uses the plain name for something else.
PREFIX: Final = "lithos_"
#: The names of the owned keys with the prefix.
PREFIXED: Final = frozenset(PREFIX + key for key in OWNED_KEYS)
_OWNED: Final = frozenset(OWNED_KEYS)
#: Keys that every change updates. Lithos knows the values of these keys without the file.
_STAMPS: Final = ("version", "updated_at")
#: Keys whose values do not show whether they belong to Lithos. They belong to Lithos only in notes that
#: Lithos manages.
_ONLY_MANAGED: Final = (*_STAMPS, "source")
_NO_ID: Final = "00000000-0000-0000-0000-000000000000"


@frozen(kw_only=True)
class OwnedKeys:
    """The values in a frontmatter that belong to Lithos, and the owners of the keys.

    `values` are the usable values by key. `foreign` are key names of Lithos whose values in the file belong
    to a person. `prefixed` are the key names that the file contains with the prefix. `said` are the keys for
    which the file contains a value of Lithos under the current key name.
    """

    values: Mapping[str, Any]
    foreign: frozenset[str] = frozenset()
    prefixed: frozenset[str] = frozenset()
    said: frozenset[str] = frozenset()
    #: True if the note has an id, a version and an update time from Lithos.
    is_managed: bool = False

    def names(self, values: Mapping[str, Any], extra: Mapping[str, Any], *, minimal: bool) -> dict[str, str]:
        """Return the key in the file for each value of Lithos.

        `extra` are the person's values after the update.

        `minimal` means that the vault belongs to a person.
        """
        keys = values.keys()
        has_prefix = self.prefixed | {key for key in keys if key in extra}
        if minimal and not is_id(values.get("supersedes") or _NO_ID):
            has_prefix |= {"supersedes"}
        if minimal and not self._will_be_managed(keys, extra, has_prefix):
            has_prefix |= {key for key in _ONLY_MANAGED if key in keys}
            if "id" in keys and all(key in extra for key in _STAMPS):
                has_prefix |= {"id"}  # otherwise, all three keys together would look like those of Lithos
        return {key: PREFIX + key if key in has_prefix else key for key in keys}

    def _will_be_managed(
        self, keys: Collection[str], extra: Mapping[str, Any], has_prefix: Collection[str]
    ) -> bool:
        known = {key for key in self.said if key not in has_prefix} | (set(keys) - set(has_prefix))
        return "id" in known and all(key in known and key not in extra for key in _STAMPS)


#: The result for a file without frontmatter.
NO_KEYS: Final = OwnedKeys(values={})


def read_owned(nodes: Mapping[str, yaml.Node], values: ValueReader, *, minimal: bool) -> OwnedKeys:
    """Return which top-level keys of a frontmatter belong to Lithos, with their values.

    `minimal` means that the file is in a person's vault.
    """
    prefixed = frozenset(name.removeprefix(PREFIX) for name in PREFIXED.intersection(nodes))
    own = nodes
    if prefixed:
        own = {key: node for key, node in nodes.items() if key not in prefixed}
        own |= {key: nodes[PREFIX + key] for key in prefixed}
    healed = heal_own(own, values, is_prefixed_id="id" in prefixed)
    foreign = {key for key in prefixed if key in nodes}
    for key in _OWNED.intersection(own):
        if key not in healed and key not in prefixed and not _is_blank(own[key]):
            foreign.add(key)
    if "source" in foreign and "source" not in prefixed and is_older_source(own, values):
        foreign.discard("source")
    free = healed.keys() - prefixed
    is_managed = free >= {"id", *_STAMPS}
    if minimal:
        foreign |= _persons(healed, own, free, values, is_managed=is_managed)
    said = frozenset(healed)
    if "updated_at" in foreign and "updated_at" not in prefixed:
        said -= {"updated_at"}  # the file contains the time, but Lithos must not change the key
    heal_older(healed, own, values)
    return OwnedKeys(
        values=healed,
        foreign=frozenset(foreign),
        prefixed=prefixed,
        said=said,
        is_managed=is_managed,
    )


def _persons(
    healed: dict[str, Any],
    own: Mapping[str, yaml.Node],
    free: Collection[str],
    values: ValueReader,
    *,
    is_managed: bool,
) -> set[str]:
    """Return the keys that belong to the person although their values are valid for Lithos.

    The file is in a person's vault.

    The values of these keys are removed from `healed`. Only the update time remains, because no better update
    time is known.
    """
    found: set[str] = set()
    if not is_managed:
        found |= {key for key in _ONLY_MANAGED if key in free}
    if "quarantine_reason" in free and healed.get("status") != "quarantined":
        found.add("quarantine_reason")
    if "confidence" in free and _is_out_of_range(own["confidence"]):
        found.add("confidence")
    if "summaries" in free and _has_others(own["summaries"], values):
        found.add("summaries")
    if "supersedes" in free and not is_id(healed["supersedes"]):
        found.add("supersedes")
    for key in found - {"updated_at"}:
        del healed[key]
    return found


def _is_blank(node: yaml.Node) -> bool:
    """Return whether the value of a key is empty. Lithos may then use the key."""
    if isinstance(node, yaml.ScalarNode):
        return is_null(node) or not node.value.strip()
    return not node.value


def _is_out_of_range(node: yaml.Node) -> bool:
    """Return whether a number is not between 0 and 1.

    For example, a confidence of 85 is probably a percentage. Lithos would read it as 1.
    """
    return isinstance(node, yaml.ScalarNode) and not 0 <= float(node.value) <= 1


def _has_others(node: yaml.Node, values: ValueReader) -> bool:
    """Return whether a mapping contains keys that summaries of Lithos do not have."""
    return isinstance(node, yaml.MappingNode) and not values.pairs(node).keys() <= {"short", "long"}


def check_keys(patch: Mapping[str, Any], extra: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` for metadata keys that belong to Lithos.

    A reserved key is allowed if a person's note already has it.

    `extra` is the additional metadata of the note, including keys that a person uses for something else.
    """
    for key in patch:
        if key in PREFIXED or (key in _OWNED and key not in extra):
            raise InvalidInput(
                f"metadata must not contain the reserved key {key!r}, which Lithos manages. Use "
                "the parameter with that name if there is one, or choose another key."
            )


def means_something(key: str, value: Any) -> bool:
    """Return whether Lithos would treat a person's value under this Lithos key as a value of Lithos."""
    try:
        mapping = read_mapping(write_entry(key, value, "", "\n"))
    except UnreadableNote:
        return False
    return bool(heal_own(mapping.nodes, mapping.values, is_prefixed_id=False))
