"""The tool that moves notes."""

from __future__ import annotations

from lithos.actors.writing.messages import MoveNote
from lithos.core.history.section_edit import OPERATIONS, SectionEdit
from lithos.tools.contract.arguments import TAKES_BACK, argument, as_command, source_of
from lithos.tools.contract.bounds import CONTENT, LOOKUP, NAME, PATH, QUERY
from lithos.tools.contract.declaring import Answer, Services, tool
from lithos.tools.contract.fitting import Paged
from lithos.tools.contract.rows import edit_row, outcome_row


@tool("lithos_note_edit", "standard", "D", place=41, counts="edit")
class NoteEditTool:
    """Change one place of a note's text: others may edit it too, no line is lost."""

    op: str = argument("What to do.", one_of=OPERATIONS, bound=LOOKUP)
    agent: str = argument("Your id.", bound=NAME)
    id: str | None = argument("Note id.", None, bound=LOOKUP, note="there")
    section: str | None = argument("Section; omit for the whole body.", None, bound=LOOKUP)
    text: str | None = argument(
        "New Markdown; a heading of the section's level replaces its heading.",
        None,
        may_be_blank=True,
        bound=CONTENT,
    )
    find: str | None = argument("Text to replace, or of the task item.", None, bound=QUERY)
    expected_version: int | None = argument("Refuse another version.", None)
    expected_hash: str | None = argument("Refuse another hash.", None, bound=LOOKUP)

    async def answer(self, using: Services) -> Answer:
        outcome = await using.knowledge.edit(
            as_command(SectionEdit, self),
            agent=self.agent,
            note_id=self.id,
            expected_version=self.expected_version,
        )
        return edit_row(outcome)


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
        answer = outcome_row(moved.outcome)
        del answer["warnings"]
        answer["rewritten"] = list(moved.rewritten)
        if moved.left:
            answer["warnings"] = [
                f"The links in {note_id} could not be rewritten yet: its file cannot be written. "
                "They are rewritten at the next start."
                for note_id in moved.left[:_TOLD]
            ]
        return answer


#: Warnings of one answer.
_TOLD = 100
