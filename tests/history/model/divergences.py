"""Generated notes that diverged on two machines, with edits on both sides, and lines that must survive."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

from attrs import frozen

ID = "0b6f4f3e-6d3b-4c39-8a8e-5a3f4f1f5d10"
#: Keys that the write sets, or that are merged as sets. For these keys, tests compare values instead of
#: lines.
BY_VALUE = ("version", "updated_at", "tags", "contributors", "aliases")
_FILLING = ("", "", "- [ ] task", "```", "---", "| a | b |", "same words", "## Part")


@frozen
class Divergence:
    """A file, and the versions into which it was changed on two machines."""

    base: bytes
    ours: bytes
    theirs: bytes


def diverge(seed: int) -> Divergence:
    """Return the divergence for this seed. The same seed always yields the same divergence."""
    random = Random(seed)
    note = _Note(random)
    sides = note.copy(), note.copy()
    for name, side in zip("ot", sides, strict=True):
        for number in range(random.choice((0, 1, 1, 2, 3, 5, 9))):
            side.edit(f"{name}{number}")
    if random.random() < 0.1:  # The two machines made the same change.
        same = random.randrange(len(note.lines) + 1)
        for side in sides:
            side.lines.insert(min(same, len(side.lines)), "done on both machines")
    base = b"" if random.random() < 0.03 else note.to_bytes()
    return Divergence(base, sides[0].to_bytes(), sides[1].to_bytes())


class _Note:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.newline = random.choice(("\n", "\n", "\n", "\r\n"))
        self.ends = random.random() < 0.8
        self.has_head = random.random() < 0.8
        self.keys: dict[str, object] = {
            "id": ID, "title": "A plan", "author": "ann", "created_at": "2026-01-02T03:04:05.000000+00:00",
            "updated_at": "2026-01-02T03:04:05.000000+00:00", "tags": ["a", "b", "c"], "version": 3,
            "contributors": ["ann"], "status": "active", "owner": "bob", "size": 12,
        }  # fmt: skip
        self.comments: dict[str, str] = {"owner": "# who pays"} if random.random() < 0.5 else {}
        self.is_flow = random.random() < 0.5
        self.lines = [
            random.choice(_FILLING) if random.random() < 0.3 else f"line {n} of the base"
            for n in range(random.choice((0, 1, 4, 8, 16, 40)))
        ]

    def copy(self) -> _Note:
        twin = object.__new__(_Note)
        for name, value in vars(self).items():
            setattr(twin, name, value.copy() if isinstance(value, dict | list) else value)
        return twin

    def edit(self, mark: str) -> None:
        random, lines = self.random, self.lines
        at = random.randrange(len(lines) + 1)
        kind = random.random()
        if kind < 0.3 or not lines:
            lines[at:at] = [f"new {mark} {n}" for n in range(random.choice((1, 1, 2, 4)))]
        elif kind < 0.45:
            lines[min(at, len(lines) - 1)] = f"changed {mark}"
        elif kind < 0.6:
            del lines[at : at + random.choice((1, 1, 2, 5))]
        elif kind < 0.68:
            moved = lines[at : at + 2]
            del lines[at : at + 2]
            to = random.randrange(len(lines) + 1)
            lines[to:to] = moved
        elif kind < 0.72:
            self.ends = not self.ends
        elif kind < 0.74:
            self.newline = "\r\n" if self.newline == "\n" else "\n"
        else:
            self._edit_head(mark)

    def _edit_head(self, mark: str) -> None:
        random, keys = self.random, self.keys
        kind = random.random()
        if kind < 0.1:
            self.has_head = not self.has_head
        elif kind < 0.3:
            items = keys["tags"] = list(keys.get("tags", []))  # type: ignore[call-overload]
            items.insert(random.randrange(len(items) + 1), f"tag-{mark}")
            if len(items) > 2 and random.random() < 0.5:
                del items[random.randrange(len(items))]
        elif kind < 0.5:
            keys[random.choice(("title", "status", "owner", "size"))] = f"value {mark}"
        elif kind < 0.6:
            keys[f"key_{random.choice('xyz')}"] = f"value {mark}"
        elif kind < 0.7:
            keys.pop(random.choice(("owner", "size", "status", "tags")), None)
        elif kind < 0.75:
            self.comments["title"] = f"# comment {mark}"
        elif kind < 0.8:
            self.is_flow = not self.is_flow
        else:
            keys["version"] = int(str(keys["version"])) + 1
            keys["updated_at"] = f"2026-02-{random.randint(1, 28):02}T03:04:05.000000+00:00"
            keys["contributors"] = ["ann", f"agent-{mark}"]

    def to_bytes(self) -> bytes:
        text = "\n".join(self.lines) + ("\n" if self.ends and self.lines else "")
        if self.has_head:
            text = f"---\n{''.join(map(self._entry, self.keys))}---\n\n# A plan\n\n{text}"
        return text.replace("\n", self.newline).encode()

    def _entry(self, key: str) -> str:
        value = self.keys[key]
        comment = f"{self.comments[key]}\n" if key in self.comments else ""
        if not isinstance(value, list):
            return f"{comment}{key}: {value}\n"
        if self.is_flow:
            return f"{comment}{key}: [{', '.join(value)}]\n"
        return f"{comment}{key}:\n" + "".join(f"  - {item}\n" for item in value)


def lost_lines(found: Divergence, merged: bytes) -> list[str]:
    """Return non-blank lines of one side that the merge lost, although the other side did not remove them."""
    base, ours, theirs, result = map(_lines, (found.base, found.ours, found.theirs, merged))
    lost: list[str] = []
    for line in ours.keys() | theirs.keys():
        was = base[line]
        one, other = ours[line] - was, theirs[line] - was
        least = was + max(one, other) if one >= 0 and other >= 0 else was + one + other
        if result[line] < least:
            lost.append(line)
    return lost


def _lines(data: bytes) -> Counter[str]:
    text = data.decode().replace("\r\n", "\n")
    head = re.match(r"---\n(.*?)^---\n", text, re.DOTALL | re.MULTILINE)
    if head is not None:
        keys, listed = [], False
        for line in head[1].split("\n"):
            if not line.startswith(" "):
                listed = line.startswith(tuple(f"{key}:" for key in BY_VALUE))
            if not listed:
                keys.append(line)
        text = "\n".join(keys) + text[head.end() :]
    return Counter(line for each in text.split("\n") if (line := each.strip()))
