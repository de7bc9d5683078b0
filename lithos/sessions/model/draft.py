"""The part of a session that is being read: the reader of a format adds what it finds, in order.

Every text is masked and cut as it is added, so that no other text leaves this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final

from attrs import define, field

from lithos.sessions.model.masking import SecretMask
from lithos.sessions.model.session import (
    LONGEST_NAME,
    MOST_FILES,
    MOST_OF_SESSION,
    MOST_OUTPUT,
    MOST_OUTPUTS,
    MOST_TEXT,
    MOST_TOOLS,
    MOST_TURNS,
    Turn,
    Who,
)

#: Reasons for which something is not stored, as they are counted and shown.
TOO_MANY_TURNS: Final = f"turns beyond the limit of {MOST_TURNS:,} turns or {MOST_OF_SESSION:,} characters"
#: Names of the values in `SessionDraft.memory` that describe the session.
NATIVE, AGENT, FOLDER, REPOSITORY = "native", "agent", "cwd", "repository"
_PARAGRAPHS: Final = "\n\n"


@define(eq=False)
class GrowingTurn:
    """A turn to which more is added."""

    number: int
    who: Who
    when: datetime | None
    key: str
    _texts: list[str] = field(factory=list)
    _size: int = 0
    _cut: int = 0
    _tools: dict[str, None] = field(factory=dict)
    _files: dict[str, None] = field(factory=dict)
    _outputs: list[str] = field(factory=list)

    @classmethod
    def again(cls, turn: Turn) -> GrowingTurn:
        """Continue a stored turn."""
        return cls(
            turn.number,
            turn.who,
            turn.when,
            turn.key,
            [turn.text] if turn.text else [],
            len(turn.text),
            turn.cut,
            dict.fromkeys(turn.tools),
            dict.fromkeys(turn.files),
            list(turn.outputs),
        )

    @property
    def has_text(self) -> bool:
        """Return whether the turn has a text, not only tool calls."""
        return bool(self._texts)

    def add_text(self, text: str, mask: SecretMask) -> None:
        """Add a paragraph. The part of it that is too long is counted."""
        room = MOST_TEXT - self._size - len(_PARAGRAPHS) * bool(self._texts)
        kept = mask.clean(text, max(0, room)) if room > 0 else ""
        self._cut += max(0, len(text) - max(0, room))
        if kept.strip():
            self._texts.append(kept.strip())
            self._size += len(kept.strip()) + len(_PARAGRAPHS)

    def add_tool(self, name: str, files: Iterable[str], mask: SecretMask) -> None:
        """Add the name of a tool and the files that it was given."""
        if name and len(self._tools) < MOST_TOOLS:
            self._tools[mask.clean(name, LONGEST_NAME)] = None
        for file in files:
            if len(self._files) == MOST_FILES:
                break
            if file and "\n" not in file:
                self._files[mask.clean(file, LONGEST_NAME)] = None

    def add_output(self, text: str, mask: SecretMask) -> None:
        """Add the beginning of a tool's output."""
        if len(self._outputs) < MOST_OUTPUTS and text.strip():
            self._outputs.append(mask.clean(text.strip(), MOST_OUTPUT))

    def freeze(self) -> Turn:
        """Return the turn as it is now."""
        return Turn(
            self.number,
            self.who,
            self.when,
            _PARAGRAPHS.join(self._texts),
            tuple(self._tools),
            tuple(self._files),
            tuple(self._outputs),
            self.key,
            self._cut,
        )


@define(eq=False)
class SessionDraft:
    """The turns that were read and not stored yet. The first may be the last stored turn, which grew.

    `memory` is kept between two reads of a transcript. `known` returns the client's ids of all stored turns.
    """

    mask: SecretMask
    memory: dict[str, Any]
    last: Turn | None = None
    stored_size: int = 0
    known: Callable[[], set[str]] = set
    skipped: Counter[str] = field(factory=Counter)
    _turns: list[GrowingTurn] = field(factory=list, init=False)
    #: Number of the turn that is read again, or 0.
    _again: int = field(default=0, init=False)
    _is_changed: bool = field(default=False, init=False)
    _known: set[str] | None = field(default=None, init=False)

    # -- the session -----------------------------------------------------------------------------

    def identify(self, **facts: str) -> None:
        """Remember facts about the session (`NATIVE`, `AGENT`, `FOLDER`, `REPOSITORY`). The first counts."""
        for name, value in facts.items():
            if value and name not in self.memory:
                self.memory[name] = value[:4_096]

    # -- its turns -------------------------------------------------------------------------------

    def prompt(self, who: Who, text: str, when: datetime | None, key: str = "") -> None:
        """Add a prompt, which is always a turn of its own."""
        if text.strip() and (turn := self._begin(who, when, key)) is not None:
            turn.add_text(text, self.mask)

    def answer(self, text: str, when: datetime | None, key: str = "") -> None:
        """Add a text of the assistant: to its turn, if that has the same key or no text yet."""
        if not text.strip():
            return
        turn = self._open()
        is_same = (
            turn is not None
            and turn.who == "assistant"
            and (not turn.has_text or bool(key and turn.key == key))
        )
        if not is_same:
            turn = self._begin("assistant", when, key)
        if turn is not None:
            turn.key = turn.key or key
            turn.add_text(text, self.mask)
            self._is_changed = True

    def tool(self, name: str, files: Iterable[str], when: datetime | None, key: str = "") -> None:
        """Add a tool call to the turn of the assistant."""
        turn = self._open()
        if turn is None or turn.who != "assistant":
            turn = self._begin("assistant", when, key)
        if turn is not None:
            turn.add_tool(name, files, self.mask)
            self._is_changed = True

    def output(self, text: str) -> None:
        """Add the output of a tool to the turn of the assistant. Without such a turn it is left out."""
        turn = self._open()
        if turn is not None and turn.who == "assistant":
            turn.add_output(text, self.mask)
            self._is_changed = True

    def message(self, key: str) -> bool:
        """Return whether a message must be read: it is new, or it is the last one, which is read again."""
        turn = self._open()
        if turn is not None and turn.key == key:
            self._turns.pop()
            if self.last is not None and self.last.number == turn.number:
                self.last = None
            self._again = turn.number
            return True
        return not self.knows(key)

    def knows(self, key: str) -> bool:
        """Return whether a turn with this id was stored or read before."""
        if self._known is None:
            self._known = self.known()
        return key in self._known or any(turn.key == key for turn in self._turns)

    def take(self) -> list[Turn]:
        """Return the turns that are new or changed. Later additions extend the last one."""
        if not self._is_changed:
            return []
        turns = [turn.freeze() for turn in self._turns]
        self._is_changed = False
        if turns:
            self.last = turns[-1]
            self.stored_size += sum(turn.size for turn in turns)
            self._known = None if self._known is None else self._known | {each.key for each in turns}
            self._turns = []
        return turns

    def _open(self) -> GrowingTurn | None:
        """Return the last turn, which may grow."""
        if not self._turns and self.last is not None:
            self._turns.append(GrowingTurn.again(self.last))
        return self._turns[-1] if self._turns else None

    def _begin(self, who: Who, when: datetime | None, key: str) -> GrowingTurn | None:
        last = self._open()
        number = self._again or (1 if last is None else last.number + 1)
        self._again = 0
        if number > MOST_TURNS or self.stored_size > MOST_OF_SESSION:
            self.skipped[TOO_MANY_TURNS] += 1
            return None
        turn = GrowingTurn(number, who, when, key)
        self._turns.append(turn)
        self._is_changed = True
        return turn
