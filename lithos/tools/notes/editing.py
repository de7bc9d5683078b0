"""The tool that changes one place of a note."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from lithos.core.history.section_edit import OPERATIONS, SectionEdit
from lithos.services.notes.knowledge import Knowledge
from lithos.tools.contract.arguments import argument, as_command
from lithos.tools.contract.bounds import CONTENT, LOOKUP, NAME, QUERY
from lithos.tools.contract.registry import Answer, Tool
from lithos.tools.contract.rows import edit_row


@frozen
class EditArguments:
    """Parameters of `lithos_note_edit`."""

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


class EditTools:
    """Handlers; each takes its arguments class."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge

    def tools(self) -> Sequence[Tool]:
        """The family."""
        return (
            Tool(
                "lithos_note_edit",
                "standard",
                "D",
                "Change one place of a note's text: others may edit it too, no line is lost.",
                EditArguments,
                self.edit,
            ),
        )

    async def edit(self, given: EditArguments) -> Answer:
        """`lithos_note_edit`."""
        outcome = await self._knowledge.edit(
            as_command(SectionEdit, given),
            agent=given.agent,
            note_id=given.id,
            expected_version=given.expected_version,
        )
        return edit_row(outcome)
