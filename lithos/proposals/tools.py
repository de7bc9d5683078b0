"""Tools for changes that wait for a person's approval (docs/spec/scopes.md §2)."""

from __future__ import annotations

from typing import Any

from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import InvalidInput
from lithos.proposals.model import STATUSES, Proposal
from lithos.proposals.service import Proposals, ShownProposal
from lithos.server.tools.arguments import argument, check_choice
from lithos.server.tools.bounds import CONTENT, DESCRIPTION, LOOKUP, NAME
from lithos.server.tools.compacting import CompactForm
from lithos.server.tools.declaring import OWN, Answer, tool
from lithos.server.tools.fitting import CuttableAnswer
from lithos.server.tools.serialization import IF_SAID, LEFT_OUT, register_row, row_of

APPROVE, REJECT = "approve", "reject"
_DECISIONS = (APPROVE, REJECT)

register_row(Proposal, begun_at=LEFT_OUT, update_links=IF_SAID)


@tool(
    "lithos_proposals",
    "standard",
    "RI",
    place=45,
    title="List proposals",
    paged=CuttableAnswer(rows=("proposals",)),
    sparing=CompactForm(always=("proposals", "total", "diff", "update_links")),
)
class ProposalsTool:
    """List changes that wait for a person's approval or, by status, that were approved or rejected, with the
    reason.
    """

    proposed_by: str | None = argument(
        "Only proposals by this agent; omit for all.", None, bound=NAME, filters_agent=True
    )
    status: str = argument("State of the proposals to list.", "pending", one_of=STATUSES, bound=LOOKUP)
    id: str | None = argument("Id of the proposal to show in full.", None, bound=LOOKUP)
    limit: int = argument("Most proposals.", 50, is_listed=False)
    offset: int = argument("Number of proposals to skip.", 0, is_listed=False)

    async def answer(self, using: Parts) -> Answer:
        if self.id is not None:
            shown = await using.get(Proposals).show(self.id)
            return await _shown_row(using, shown)
        check_choice("status", self.status, STATUSES)
        found, total = await using.get(Proposals).listed(
            self.status, self.proposed_by, self.limit, self.offset
        )
        return {"proposals": [row_of(each) for each in found], "total": total}


@tool("lithos_proposal_withdraw", "standard", "I", place=46, title="Withdraw a proposal")
class ProposalWithdrawTool:
    """Withdraw one of your own proposals."""

    agent: str = argument("Your agent id.", bound=NAME)
    id: str = argument("Id of the proposal.", bound=LOOKUP)

    async def answer(self, using: Parts) -> Answer:
        done = await using.get(Proposals).withdraw(self.id, self.agent)
        return {"status": done.status, "id": done.id}


@tool("lithos_proposal_decide", OWN, "D", place=47)
class ProposalDecideTool:
    """Approve or reject a proposal, for a person at the console or a terminal."""

    id: str = argument("Id of the proposal.", bound=LOOKUP)
    decision: str = argument("The person's decision.", one_of=_DECISIONS, bound=LOOKUP)
    by: str = argument("Name of the person.", bound=NAME)
    reason: str | None = argument("Reason for the rejection.", None, bound=DESCRIPTION)
    seal: str | None = argument("Seal of the proposal version that the person saw.", None, bound=LOOKUP)
    text: str | None = argument("Whole file as edited by the person.", None, bound=CONTENT)

    async def answer(self, using: Parts) -> Answer:
        check_choice("decision", self.decision, _DECISIONS)
        if self.decision == REJECT:
            if self.text is not None:
                raise InvalidInput("A rejection changes no text. Leave text out.")
            done = await using.get(Proposals).reject(self.id, self.by, self.reason or "", self.seal)
            return _decided_row(done)
        decided, outcome = await using.get(Proposals).approve(self.id, self.by, self.seal, self.text)
        merged = {} if outcome.merged_with is None else {"merged_with": outcome.merged_with}
        return _decided_row(decided) | {"path": outcome.path, "version": outcome.version} | merged


def _decided_row(proposal: Proposal) -> dict[str, Any]:
    return {
        "status": proposal.status,
        "id": proposal.id,
        "note_id": proposal.note_id,
        "path": proposal.path,
        "version": None,
    }


async def _shown_row(using: Parts, shown: ShownProposal) -> dict[str, Any]:
    diff, is_truncated = await using.get(Proposals).difference(shown)
    return {
        "proposal": row_of(shown.proposal),
        "current": _text(shown.current),
        "proposed": _text(shown.proposed),
        "diff": diff,
        "truncated": is_truncated,
        "conflicts": [dict(each) for each in shown.conflicts],
        "seal": shown.seal,
    }


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")
