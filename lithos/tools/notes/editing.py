"""The tool that changes one place of a note."""

from __future__ import annotations

from lithos.core.history.section_edit import OPERATIONS, SectionEdit
from lithos.tools.contract.arguments import argument, as_command
from lithos.tools.contract.bounds import CONTENT, LOOKUP, NAME, QUERY
from lithos.tools.contract.declaring import Answer, Services, tool
from lithos.tools.contract.rows import edit_row


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
