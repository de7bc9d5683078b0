"""Counts of notes per tag and per spelling of the tag."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from lithos.text.words.list_filters import distinct_tags, most_written, tag_key


@frozen
class TagCounts:
    """Counters of notes by tag and spelling. Spellings with the same key count as one tag."""

    #: Numbers of notes by key, then by spelling. Keys and spellings without notes are removed.
    _spelled: dict[str, dict[str, int]] = field(factory=dict, init=False)

    def __len__(self) -> int:
        return len(self._spelled)

    def add(self, tags: Iterable[str]) -> None:
        """Count the tags of a note."""
        for tag in distinct_tags(tags):
            spelled = self._spelled.setdefault(tag_key(tag), {})
            spelled[tag] = spelled.get(tag, 0) + 1

    def discard(self, tags: Iterable[str]) -> None:
        """Reverse the effect of `add` for the same tags."""
        for tag in distinct_tags(tags):
            key = tag_key(tag)
            spelled = self._spelled[key]
            if spelled[tag] > 1:
                spelled[tag] -= 1
            elif len(spelled) > 1:
                del spelled[tag]
            else:
                del self._spelled[key]

    def counts(self, begins: str = "") -> dict[str, int]:
        """Return the number of notes per tag, sorted by name.

        Only tags that begin with `begins` are counted. Case and spelling are ignored.
        """
        wanted = tag_key(begins) if begins.strip("#/ ") else ""
        wanted += "/" if wanted and begins.endswith("/") else ""
        found: dict[str, int] = {}
        for key, spelled in self._spelled.items():
            if wanted and not key.startswith(wanted):
                continue
            if [*spelled] == [key]:  # for nearly every tag, all notes use its key as the spelling
                found[key] = spelled[key]
            else:
                found[most_written(spelled)] = sum(spelled.values())
        return dict(sorted(found.items()))
