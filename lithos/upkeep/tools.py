"""Tools for note care: care reports, care tasks and usage counts.

The tools are specified in docs/spec/copies.md §5 and §6.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.findings import Check, Issue
from lithos.kernel.values.times import format_time
from lithos.server.tools.arguments import argument
from lithos.server.tools.bounds import LOOKUP, NAME
from lithos.server.tools.declaring import OWN, Answer, tool
from lithos.server.tools.fitting import CuttableAnswer
from lithos.server.tools.serialization import row_of
from lithos.upkeep.checks.care import Care, CareTasks
from lithos.upkeep.checks.worth import DAYS, WorthCounter

#: Maximum seconds that a call waits for a report.
PATIENCE: Final = 20.0


@tool("lithos_worth", OWN, "RI", place=50, paged=CuttableAnswer(rows=("rows",)))
class WorthTool:
    """Show how many searches, reads, citations and handovers agents made, by day and agent."""

    days: int = argument("Number of days, including today.", DAYS)

    async def answer(self, using: Parts) -> Answer:
        worth = await using.get(WorthCounter).count(self.days)
        return {
            "since": worth.since.isoformat(),
            "until": worth.until.isoformat(),
            "total": attrs.asdict(worth.total),
            "rows": [
                {"day": day.isoformat(), "agent": agent, **attrs.asdict(counts)}
                for day, agent, counts in worth.rows
            ],
        }


@tool("lithos_care", OWN, "RI", place=51, paged=CuttableAnswer(rows=("rows",)))
class CareTool:
    """List notes that need attention: near duplicates, dead links, stubs and more. Changes nothing."""

    of: str | None = argument(
        "Time of an earlier report to continue. Default: run a new check.", None, bound=LOOKUP
    )

    async def answer(self, using: Parts) -> Answer:
        report = using.get(Care).last
        if report is None or self.of != format_time(report.at):
            report = await using.get(Care).report(PATIENCE)
        if report is None:
            return {"status": "looking", "rows": []}
        groups = report.groups.values()
        return {
            "status": "ok",
            "at": format_time(report.at),
            "notes": report.notes,
            "totals": {each.check.name: each.total for each in groups},
            "checks": [_check_row(each.check) for each in groups],
            "troubles": list(report.troubles),
            "rows": [_care_row(each.check.name, issue) for each in groups for issue in each.issues],
        }


def _check_row(check: Check) -> dict[str, Any]:
    row = {key: getattr(check, key) for key in ("name", "severity", "title", "way_out")}
    return {**row, "can_mend": check.mend is not None}


def _care_row(group: str, issue: Issue) -> dict[str, Any]:
    told = {"group": group, "notes": list(map(row_of, issue.notes)), "why": issue.detail}
    if issue.link is None:
        return told
    return told | {"link": issue.link, "likely": None if issue.likely is None else row_of(issue.likely)}


@tool("lithos_care_tasks", OWN, "I", place=52, of="tasks")
class CareTasksTool:
    """Open a task for each group of the last care report that has no task."""

    by: str = argument("Name of the person.", bound=NAME)

    async def answer(self, using: Parts) -> Answer:
        if (report := using.get(Care).last) is None:
            raise InvalidInput("There is no care report yet. Run `lithos care` first.")
        opened = await using.get(CareTasks).open(report, self.by)
        titles = {name: group.check.title for name, group in report.groups.items()}
        return {"tasks": [{"title": titles[each.group], **row_of(each)} for each in opened]}
