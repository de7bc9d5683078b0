"""The tool that moves notes."""

from __future__ import annotations

from lithos.actors.writing.messages import MoveNote
from lithos.tools.contract.arguments import TAKES_BACK, argument, as_command, source_of
from lithos.tools.contract.bounds import LOOKUP, NAME, PATH
from lithos.tools.contract.declaring import Answer, Services, tool
from lithos.tools.contract.fitting import Paged


@tool("lithos_note_move", "full", "D", place=40, paged=Paged(beside=("rewritten",)), counts="move")
class NoteMoveTool:
    """Move or rename a note's file; links to it are rewritten, its id stays."""

    id: str = argument("Note id.", bound=LOOKUP, note="there")
    path: str = argument("New folder, or new file ending in .md.", bound=PATH)
    agent: str = argument("Your id.", bound=NAME)
    update_links: bool = argument("Rewrite the links that would break.", True)
    expected_version: int | None = argument("Refuse the move if the note has another version.", None)
    undo: bool = argument(TAKES_BACK, False, is_own=True)

    async def answer(self, using: Services) -> Answer:
        moved = await using.moving.move(as_command(MoveNote, self, source=source_of(self.undo)))
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
