"""The tool that changes one place of a note."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from lithos.core.history.section_edit import OPERATIONS, SectionEdit
from lithos.services.notes.knowledge import Knowledge
from lithos.tools.contract.arguments import argument, as_command
from lithos.tools.contract.bounds import CONTENT, LOOKUP, NAME, PATH, QUERY
from lithos.tools.contract.registry import Answer, Tool
from lithos.tools.contract.rows import edit_row


@frozen
class EditArguments:
    """Parameters of `lithos_note_edit`."""

    op: str = argument("What to do.", one_of=OPERATIONS, bound=LOOKUP)
    agent: str = argument("Your id.", bound=NAME)
    id: str | None = argument("Note id.", None, bound=LOOKUP)
    path: str | None = argument("Path, instead of the id.", None, bound=PATH)
    section: str | None = argument("Section path or tail; omit for the whole body.", None, bound=LOOKUP)
    text: str | None = argument(
        "New Markdown. Begins with a heading of the section's level: replaces its heading.",
        None,
        may_be_blank=True,
        bound=CONTENT,
    )
    find: str | None = argument("Exact text to replace, or text of the task item.", None, bound=QUERY)
    expected_version: int | None = argument("Refuse another version.", None)
    expected_hash: str | None = argument("Refuse another hash of the section.", None, bound=LOOKUP)


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
                "Change one place of a note's text: others may edit it at the same time, no line is lost.",
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
            path=given.path,
            expected_version=given.expected_version,
        )
        return edit_row(outcome)
