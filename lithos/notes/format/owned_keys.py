"""The keys of a frontmatter that contain values of Lithos, and the keys that are a person's own.

A key that Lithos knows is Lithos's only where its value is valid for Lithos: `version: 1.4.2`, `status:
reading` and `id: intro` are a person's, like any key that Lithos does not know. Lithos then uses its own key,
`lithos_` and the name; this key also marks the one without it as a person's. In a person's vault `version`,
`updated_at` and `source` are Lithos's only in notes that have an id, a version and a time of update of
Lithos's all together: notes that it made, and notes that an earlier Lithos changed.
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

#: Prefix of a key whose plain name a person uses for something else.
PREFIX: Final = "lithos_"
#: The keys with that prefix.
PREFIXED: Final = frozenset(PREFIX + key for key in OWNED_KEYS)
_OWNED: Final = frozenset(OWNED_KEYS)
#: Keys whose values follow from every change, and that Lithos knows without the file.
_STAMPS: Final = ("version", "updated_at")
#: Keys with values of any kind, which are Lithos's in its own notes alone.
_ONLY_MANAGED: Final = (*_STAMPS, "source")
_NO_ID: Final = "00000000-0000-0000-0000-000000000000"


@frozen(kw_only=True)
class OwnedKeys:
    """The values of Lithos in a frontmatter.

    `values` are usable ones by key. `foreign` are the keys of Lithos whose values in the file are a person's,
    `prefixed` those that the file has with the prefix. `said` are the keys of which the file itself gives
    Lithos a value, in their current spelling.
    """

    values: Mapping[str, Any]
    foreign: frozenset[str] = frozenset()
    prefixed: frozenset[str] = frozenset()
    said: frozenset[str] = frozenset()
    #: It has an id, a version and a time of update that Lithos wrote.
    is_managed: bool = False

    def names(self, values: Mapping[str, Any], extra: Mapping[str, Any], *, minimal: bool) -> dict[str, str]:
        """Return the keys of the file under which values of Lithos are written; `extra` then has the person's
        values.

        `minimal`: the vault is a person's.
        """
        keys = values.keys()
        has_prefix = self.prefixed | {key for key in keys if key in extra}
        if minimal and not is_id(values.get("supersedes") or _NO_ID):
            has_prefix |= {"supersedes"}
        if minimal and not self._will_be_managed(keys, extra, has_prefix):
            has_prefix |= {key for key in _ONLY_MANAGED if key in keys}
            if "id" in keys and all(key in extra for key in _STAMPS):
                has_prefix |= {"id"}  # or else all three together would look like Lithos's
        return {key: PREFIX + key if key in has_prefix else key for key in keys}

    def _will_be_managed(
        self, keys: Collection[str], extra: Mapping[str, Any], has_prefix: Collection[str]
    ) -> bool:
        known = {key for key in self.said if key not in has_prefix} | (set(keys) - set(has_prefix))
        return "id" in known and all(key in known and key not in extra for key in _STAMPS)


#: The values of a file without frontmatter.
NO_KEYS: Final = OwnedKeys(values={})


def read_owned(nodes: Mapping[str, yaml.Node], values: ValueReader, *, minimal: bool) -> OwnedKeys:
    """Take a frontmatter's top-level keys apart; `minimal`: it is from a person's vault."""
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
        said -= {"updated_at"}  # the file gives the time, but the key must not be changed
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
    """Return the keys of a vault whose values are valid for Lithos, but a person's nevertheless.

    Their values are removed from `healed`, except the time of update, which is the best one known.
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
    """Return whether a key has no value, so that Lithos can use it."""
    if isinstance(node, yaml.ScalarNode):
        return is_null(node) or not node.value.strip()
    return not node.value


def _is_out_of_range(node: yaml.Node) -> bool:
    """Of a number: 85 is a percentage, which Lithos would take for 1."""
    return isinstance(node, yaml.ScalarNode) and not 0 <= float(node.value) <= 1


def _has_others(node: yaml.Node, values: ValueReader) -> bool:
    """Return whether a mapping has keys besides those of Lithos's summaries."""
    return isinstance(node, yaml.MappingNode) and not values.pairs(node).keys() <= {"short", "long"}


def check_keys(patch: Mapping[str, Any], extra: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` for keys of Lithos in metadata, but for those that a person's note has already.

    `extra` are the note's further keys, those among them that a person uses for something else.
    """
    for key in patch:
        if key in PREFIXED or (key in _OWNED and key not in extra):
            raise InvalidInput(
                f"metadata must not contain {key!r}, which is reserved: Lithos keeps it itself. Use the "
                "parameter of that name if there is one, or another key."
            )


def means_something(key: str, value: Any) -> bool:
    """Return whether a value of a person under a key of Lithos would be read as Lithos's."""
    try:
        mapping = read_mapping(write_entry(key, value, "", "\n"))
    except UnreadableNote:
        return False
    return bool(heal_own(mapping.nodes, mapping.values, is_prefixed_id=False))
