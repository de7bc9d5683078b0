"""The tool that moves notes."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from lithos.actors.writing.messages import MoveNote
from lithos.services.notes.moving import Moving
from lithos.tools.contract.arguments import TAKES_BACK, argument, as_command, source_of
from lithos.tools.contract.bounds import LOOKUP, NAME, PATH
from lithos.tools.contract.registry import Answer, Tool


@frozen
class MoveArguments:
    """Parameters of `lithos_note_move`."""

    id: str = argument("Note id.", bound=LOOKUP, note="there")
    path: str = argument("New folder, or new file ending in .md.", bound=PATH)
    agent: str = argument("Your id.", bound=NAME)
    update_links: bool = argument("Rewrite the links that would break.", True)
    expected_version: int | None = argument("Refuse the move if the note has another version.", None)
    undo: bool = argument(TAKES_BACK, False, is_own=True)


class MoveTools:
    """Handlers; each takes its arguments class."""

    def __init__(self, moving: Moving) -> None:
        self._moving = moving

    def tools(self) -> Sequence[Tool]:
        """The family."""
        return (
            Tool(
                "lithos_note_move",
                "full",
                "D",
                "Move or rename a note's file; links to it are rewritten, its id stays.",
                MoveArguments,
                self.move,
            ),
        )

    async def move(self, given: MoveArguments) -> Answer:
        """`lithos_note_move`."""
        moved = await self._moving.move(as_command(MoveNote, given, source=source_of(given.undo)))
        answer = {
            "status": moved.outcome.status,
            "id": moved.outcome.id,
            "path": moved.outcome.path,
            "version": moved.outcome.version,
            "rewritten": list(moved.rewritten),
        }
        if moved.left:
            answer["warnings"] = [
                f"The links in {note_id} could not be rewritten yet: its file cannot be written. "
                "They are rewritten at the next start."
                for note_id in moved.left[:_TOLD]
            ]
        return answer


#: Warnings of one answer.
_TOLD = 100
