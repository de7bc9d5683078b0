"""Conversion of frontmatter nodes to note values and of note values to frontmatter.

Reading is tolerant and accepts older key names (docs/spec/notes.md §3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import yaml
from attrs import evolve
from yaml.constructor import SafeConstructor

from lithos.kernel.values.graphemes import beginning
from lithos.kernel.values.ids import UUID, is_id
from lithos.kernel.values.limits import ID, ITEMS, SUMMARY, URL, cut_items, cut_name
from lithos.kernel.values.times import end_of_day, parse_end, parse_time
from lithos.notes.model.note import ACCESS_SCOPES, NOTE_TYPES, OWNED_KEYS, STATUSES, Note
from lithos.text.markdown import clean_title
from lithos.text.yaml.nodes import MAX_DEPTH, UnreadableNote, ValueReader, is_integer, is_null

_CONSTRUCTOR: Final = SafeConstructor()
_LARGEST_INTEGER: Final = 2**63 - 1


def clean_items(items: Iterable[str]) -> tuple[str, ...]:
    """Return the trimmed items.

    Empty items are removed, and items are cut to the maximum length and number.
    """
    return tuple(cut_items(items))


def clean_sources(ids: Iterable[str], own_id: str) -> tuple[str, ...]:
    """Return the UUIDs among `ids` except `own_id`, in lower case, sorted and without duplicates."""
    known = {text for item in ids if UUID.fullmatch(text := item.strip().lower())}
    return tuple(sorted(known - {own_id.lower()})[:ITEMS])


def clean_confidence(number: float) -> float:
    """Return `number`, limited to between 0 and 1. If `number` is not finite, return 1.0."""
    return min(1.0, max(0.0, float(number))) if math.isfinite(number) else 1.0


def heal_own(nodes: Mapping[str, yaml.Node], values: ValueReader, *, is_prefixed_id: bool) -> dict[str, Any]:
    """Return the usable values of a frontmatter by owned key. Missing and unusable values are left out.

    `derived_from_ids` may still contain the id of the note itself. An id must be a UUID, unless
    `is_prefixed_id` is set. The key then certainly belongs to Lithos, so any other id is allowed, too.
    """
    healed: dict[str, Any] = {}
    for key, node in nodes.items():
        healer = _HEALERS.get(key)
        if key == "id" and is_prefixed_id:
            healer = _whole(ID)
        if healer is not None and not is_null(node) and (value := healer(node, values)) is not None:
            healed[key] = value
    return healed


def heal_older(healed: dict[str, Any], nodes: Mapping[str, yaml.Node], values: ValueReader) -> None:
    """Add the values under older key names for keys that do not have a value yet."""
    for key, older in (("created_at", "created"), ("updated_at", "updated")):
        if key not in healed and older in nodes and (moment := _time(nodes[older], values)) is not None:
            healed[key] = moment
    lineage = older_source(nodes, values) or {}
    if "task" in lineage and (task := _name(lineage["task"], values)) is not None:
        healed["source"] = task
    for key, former in (("derived_from_ids", lineage.get("derived_from")), ("tags", nodes.get("tag"))):
        if former is not None and key not in healed and (items := _items(former, values)):
            healed[key] = items
    # Tools do not change aliases, so the values of `alias`, an Obsidian key, are added to those of `aliases`.
    if "alias" in nodes and (aliases := _items(nodes["alias"], values)):
        healed["aliases"] = clean_items(dict.fromkeys((*healed.get("aliases", ()), *aliases)))


def is_older_source(nodes: Mapping[str, yaml.Node], values: ValueReader) -> bool:
    """Return whether `source` is a mapping, which is its older form."""
    return older_source(nodes, values) is not None


def older_source(nodes: Mapping[str, yaml.Node], values: ValueReader) -> dict[str, yaml.Node] | None:
    """Return the pairs of `source` if it is in the older form, `source: {task, derived_from}`.

    Return None if `source` has another form.
    """
    node = nodes.get("source")
    if not isinstance(node, yaml.MappingNode):
        return None
    pairs = values.pairs(node)
    return pairs if "task" in pairs or "derived_from" in pairs else None


def _text(node: yaml.Node, values: ValueReader) -> str | None:
    return (_scalar(node) or "").strip() or None


def _scalar(node: yaml.Node) -> str | None:
    return str(node.value) if isinstance(node, yaml.ScalarNode) and not is_null(node) else None


def _name(node: yaml.Node, values: ValueReader) -> str | None:
    text = _text(node, values)
    return None if text is None else cut_name(text)


def _whole(limit: int) -> Callable[[yaml.Node, ValueReader], str | None]:
    """Return a reader for texts of up to `limit` characters. For a longer text, the reader returns None."""

    def read(node: yaml.Node, values: ValueReader) -> str | None:
        text = _text(node, values)
        return text if text is None or len(text) <= limit else None

    return read


def _uuid(node: yaml.Node, values: ValueReader) -> str | None:
    """Return an id if it has the form of Lithos ids, in lower or upper case.

    An `id` in any other form belongs to a person.
    """
    text = _text(node, values)
    return text if text is not None and is_id(text) else None


def _title(node: yaml.Node, values: ValueReader) -> str | None:
    # A collection on one line counts as a text: in `title: [draft]`, the person's title is `[draft]`.
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        return None
    return clean_title(values.text(node)) or None


def _sources(node: yaml.Node, values: ValueReader) -> tuple[str, ...] | None:
    """Return the sources, including entries that are not ids.

    If no entry is an id, the list belongs to a person.
    """
    items = _items(node, values)
    if items and not any(is_id(item.strip()) for item in items):
        return None
    return items


def _address(node: yaml.Node, values: ValueReader) -> str | None:
    """Return a web address that begins with http or https. The rest is not checked."""
    text = _whole(URL)(node, values)
    return text if text is not None and text.lower().startswith(("http://", "https://")) else None


def _items(node: yaml.Node, values: ValueReader) -> tuple[str, ...] | None:
    if isinstance(node, yaml.SequenceNode):
        return clean_items("" if is_null(item) else values.text(item) for item in node.value)
    if isinstance(node, yaml.ScalarNode):
        return () if is_null(node) else clean_items(node.value.split(","))
    return None


def _time(node: yaml.Node, values: ValueReader) -> datetime | None:
    text = _text(node, values)
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError:
        return _loose_time(text)


def _end(node: yaml.Node, values: ValueReader) -> datetime | None:
    """Return the end of a validity period. If only a date is given, return the end of that day."""
    text = _text(node, values)
    if text is None:
        return None
    try:
        return parse_end(text)
    except ValueError:
        moment = _loose_time(text)
    return moment if moment is None or ":" in text else end_of_day(moment.date())


def _loose_time(text: str) -> datetime | None:
    """Return the time of a timestamp that YAML accepts but ISO 8601 does not.

    Examples: `2024-1-5`, `2001-12-14 21:59:43 -5`.
    """
    if not SafeConstructor.timestamp_regexp.match(text):
        return None
    try:
        moment = _CONSTRUCTOR.construct_yaml_timestamp(yaml.ScalarNode("", text))
        return parse_time(moment.isoformat())
    except (ValueError, OverflowError):
        return None


def _confidence(node: yaml.Node, values: ValueReader) -> float | None:
    text = _text(node, values)
    try:
        return None if text is None else clean_confidence(float(text))
    except ValueError:
        return None


def _integer(node: yaml.Node, values: ValueReader) -> int | None:
    text = _text(node, values)
    try:
        number = None if text is None else int(text)
    except ValueError:
        return None
    return number if number is not None and abs(number) <= _LARGEST_INTEGER else None


def _version(node: yaml.Node, values: ValueReader) -> int | None:
    number = _integer(node, values)
    return number if number is not None and number >= 1 else None


def _choice(allowed: tuple[str, ...]) -> Callable[[yaml.Node, ValueReader], str | None]:
    def choose(node: yaml.Node, values: ValueReader) -> str | None:
        text = (_text(node, values) or "").lower()
        return text if text in allowed else None

    return choose


def _summaries(node: yaml.Node, values: ValueReader) -> dict[str, str] | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    pairs = values.pairs(node)
    texts = {key: _scalar(pairs[key]) for key in ("short", "long") if key in pairs}
    return {key: beginning(text, SUMMARY) for key, text in texts.items() if text is not None} or None


_HEALERS: Final[dict[str, Callable[[yaml.Node, ValueReader], Any]]] = {
    "id": _uuid,
    "title": _title,
    "author": _name,
    "created_at": _time,
    "updated_at": _time,
    "tags": _items,
    "aliases": _items,
    "confidence": _confidence,
    "contributors": _items,
    "source": _name,
    "supersedes": _name,
    "version": _version,
    "source_url": _address,
    "derived_from_ids": _sources,
    "expires_at": _end,
    "schema_version": _integer,
    "namespace": _name,
    "access_scope": _choice(ACCESS_SCOPES),
    "note_type": _choice(NOTE_TYPES),
    "status": _choice(STATUSES),
    "quarantine_reason": _name,
    "summaries": _summaries,
    "entities": _items,
    "entities_extractor": lambda node, values: _integer(node, values) if is_integer(node) else None,
}


_WRITTEN_IF_SET: Final = frozenset({
    "source_url", "derived_from_ids", "expires_at", "namespace", "quarantine_reason", "summaries", "entities",
    "entities_extractor",
})  # fmt: skip


def normalise_note(note: Note) -> Note:
    """Return the note as it will read back from a file.

    Texts are trimmed, empty items removed, and times in UTC.

    Raise `UnreadableNote` if `extra` is nested too deeply to be read back.
    """
    _refuse_deep_nesting(note.extra)
    return evolve(
        note,
        id=note.id.strip(),
        title=clean_title(note.title),
        author=cut_name(note.author),
        created_at=note.created_at.astimezone(UTC),
        updated_at=note.updated_at.astimezone(UTC),
        tags=clean_items(note.tags),
        aliases=clean_items(note.aliases),
        confidence=clean_confidence(note.confidence),
        contributors=clean_items(note.contributors),
        source=cut_name(note.source or "") or None,
        supersedes=cut_name(note.supersedes or "") or None,
        source_url=(note.source_url or "").strip() or None,
        derived_from_ids=clean_sources(note.derived_from_ids, note.id),
        expires_at=note.expires_at and note.expires_at.astimezone(UTC),
        namespace=cut_name(note.namespace or "") or None,
        quarantine_reason=cut_name(note.quarantine_reason or "") or None,
        summaries={key: beginning(text, SUMMARY) for key, text in note.summaries.items()}
        if note.summaries
        else None,
        entities=clean_items(note.entities),
        extra=dict(note.extra),
    )


def _refuse_deep_nesting(extra: Mapping[str, Any]) -> None:
    level: list[Any] = [extra]
    for _ in range(MAX_DEPTH + 1):
        inner = (item.values() if isinstance(item, Mapping) else item for item in level)
        level = [part for items in inner for part in items if isinstance(part, (Mapping, list, tuple))]
        if not level:
            return
    raise UnreadableNote(f"the metadata is nested deeper than {MAX_DEPTH} levels; flatten it")


def written_values(note: Note) -> dict[str, Any]:
    """Return the owned keys that the file should contain, with their values, in the order of the file.

    Tuples are converted to lists.
    """
    values = {key: getattr(note, key) for key in OWNED_KEYS}
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in values.items()
        if key not in _WRITTEN_IF_SET or value not in (None, (), {})
    }
