"""`lithos projects`: prints the projects of the notes and tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lithos.server.command.ask_ports import ToolClient
from lithos.server.command.asking import ask_rows, ask_tool, asking
from lithos.server.command.output import tell
from lithos.server.command.session import CommandSession
from lithos.server.command.streams import make_printable

_NO_PROJECT = "(no project)"


async def projects(session: CommandSession, asker: ToolClient) -> int:
    """Print the projects and return 0."""
    answer = await ask_tool(asker, "lithos_projects", {})
    rows = answer["projects"]
    if answer.get("next_offset"):
        rows = await ask_rows(asker, "lithos_projects", {}, "projects")
    common = answer["common"]
    tell(session, {"projects": rows, "common": common}, _list(rows, common))
    return 0


def _list(rows: Sequence[Mapping[str, Any]], common: Mapping[str, int]) -> Iterator[str]:
    if not rows:
        yield "No note or task has a project yet. Add the property project to a note, or see docs/agents.md."
        return
    shown = [(make_printable(row["project"]), row) for row in rows]
    width = max(len(_NO_PROJECT), *(len(name) for name, _ in shown))
    yield f"{'project':<{width}}  {'notes':>7}  {'tasks':>7}  {'open':>7}  {'sessions':>8}  last change"
    for name, row in shown:
        at = (row["last_change"] or "")[:16].replace("T", " ")
        numbers = f"{row['notes']:>7,}  {row['tasks']:>7,}  {row['open_tasks']:>7,}  {row['sessions']:>8,}"
        yield f"{name:<{width}}  {numbers}  {at}".rstrip()
    yield f"{_NO_PROJECT:<{width}}  {common['notes']:>7,}  {common['tasks']:>7,}"


run_projects = asking(projects)
