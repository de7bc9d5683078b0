"""`/console/review`: pages on which a person approves, edits or rejects proposals of agents.

A person approves exactly the change on the page. Every form includes the seal of the displayed change, and a
decision is refused if the change would have a different result now. If a form decides several proposals, the
page reports each result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

import trio
from attrs import define, field, frozen
from quart import Blueprint, Response, request

from lithos.events.reading.event_stream import Activity
from lithos.kernel.actors.threads import Threads
from lithos.kernel.values.errors import ProposalNotFound
from lithos.kernel.values.limits import Newest
from lithos.proposals.model import LONGEST_REASON, PendingProposals, Proposal
from lithos.proposals.pages_difference import name_all
from lithos.proposals.pages_proposal import ProposalView, grouped, in_order, read_signs, write_signs
from lithos.proposals.service import Proposals
from lithos.server.console.console import Console, Form, PageRefused, given, given_offset, keep
from lithos.server.console.formats import plural, query_with, readable, whole
from lithos.server.tools.arguments import ArgumentFault
from lithos.text.words.hidden_characters import find_signs

#: Number of proposals per page of the queue.
SHOWN: Final = 20
#: Maximum numbers of diff lines per proposal: in the queue, and on the proposal's own page. The first number
#: applies unless the page would be too large. Then the next smaller number is tried.
LINES: Final = (30, 12, 4)
LINES_ALONE: Final = (2_000, 1_000, 400, 100, 20)
#: Maximum seconds to load the proposals of a page, and maximum seconds for the decisions of one request.
LOOK_SECONDS: Final = 5.0
DECIDE_SECONDS: Final = 20.0
#: Maximum number of proposals that one form can decide.
MOST_PICKED: Final = 100
#: Maximum number of conflicts shown per proposal.
MOST_CONFLICTS: Final = 10
#: Maximum number of notes to list whose links a move rewrites.
MOST_RELINKED: Final = 50
#: Maximum number of stored outcomes, and of stored texts that a person edited. The next page shows them.
MOST_REPORTS: Final = 50
MOST_DRAFTS: Final = 20
#: Keyboard shortcuts of these pages, with descriptions. `GROUPINGS` has the ways to group the queue, with
#: labels.
KEYS: Final = (
    (
        "Review",
        (
            (("j",), "opens the next proposal"),
            (("k",), "opens the previous proposal"),
            (("a",), "approves the proposal; with a warning, selects the confirmation box first"),
            (("r",), "rejects the proposal, after asking for a reason"),
            (("e",), "opens the text of the proposal for changes"),
        ),
    ),
)
GROUPINGS: Final[Mapping[str, str]] = {"agent": "By agent", "note": "By note"}
_UNCONFIRMED: Final = (
    "was not approved: it adds invisible or look-alike characters. Check them, tick the box next "
    "to Approve, and approve the proposal again"
)
_ANCHOR: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the routes of the queue and of the page for one proposal."""
    pages = ReviewPages(console)
    app.get("/review")(pages.queue)
    app.post("/review", endpoint="decide proposals")(console.change(pages.decide, "admin"))
    app.get("/review/<proposal_id>")(pages.alone)
    app.post("/review/<proposal_id>", endpoint="change proposal")(console.change(pages.change, "admin"))


Ending = Literal["ok", "warn", "bad"]


@frozen
class DecisionNotice:
    """The outcome of a decision, as the rest of a sentence that begins with the proposal's title."""

    ending: Ending
    id: str
    title: str
    text: str
    note_id: str = ""
    #: The URL of the page that undoes the approval, or "" if there is nothing to undo.
    undo: str = ""


@frozen(kw_only=True)
class EditedProposal:
    """A proposed text that a person edited, and the message to show with it."""

    proposal_id: str
    text: str
    message: str
    ending: Ending


@define(eq=False)
class ReviewPages:
    """The console pages for proposals."""

    _console: Console
    #: The threads that compare texts before a proposal with warnings is approved.
    _comparing: Threads = field(factory=Threads)
    _reports: Newest[str, Sequence[DecisionNotice]] = field(factory=lambda: Newest(MOST_REPORTS))
    _drafts: Newest[str, EditedProposal] = field(factory=lambda: Newest(MOST_DRAFTS))

    async def queue(self) -> Response:
        """Show the pending proposals, grouped by agent or by note.

        The group with the earliest expiry comes first.
        """
        by = _grouping()
        rows = in_order(self._console.parts.get(PendingProposals).all(), by)
        offset = given_offset(len(rows))
        shown = await self._look(rows[offset : offset + SHOWN])
        return await self._console.show_within(
            "review.html",
            "most",
            LINES,
            groups=grouped(shown, rows, by),
            by=by,
            groupings=[(name, query_with({}, by=key)) for key, name in GROUPINGS.items()],
            here=GROUPINGS[by],
            total=len(rows),
            limit=SHOWN,
            offset=offset,
            done=self._reports.get(request.args.get("done", ""), ()),
            **self._shared(),
        )

    async def alone(self, proposal_id: str) -> Response:
        """Show one proposal with its complete diff and its editable text.

        For a decided proposal, the page names the person who decided.
        """
        proposal = await self._read(proposal_id)
        draft = self._drafts.get(request.args.get("draft", ""))
        if draft is not None and draft.proposal_id != proposal_id:
            draft = None
        by = _grouping()
        ids = [row.id for row in in_order(self._console.parts.get(PendingProposals).all(), by)]
        place = ids.index(proposal_id) if proposal_id in ids else None
        return await self._console.show_within(
            "review_one.html",
            "most",
            LINES_ALONE,
            proposal=proposal,
            draft=draft,
            written=proposal.editable if draft is None else write_signs(draft.text),
            before=ids[place - 1] if place else None,
            after=ids[place + 1] if place is not None and place + 1 < len(ids) else None,
            by=by,
            **self._shared(),
        )

    def _shared(self) -> dict[str, Any]:
        parts = self._console.parts
        return {
            "name_all": name_all,
            "most_conflicts": MOST_CONFLICTS,
            "most_relinked": MOST_RELINKED,
            "longest_reason": LONGEST_REASON,
            "reasons": parts.get(Proposals).last_reasons(),
            "keys_of_page": KEYS,
            "head_seq": parts.get(Activity).head,
        }

    async def _look(self, rows: Iterable[Proposal]) -> list[ProposalView]:
        """Return the effects of these proposals within a time limit.

        Proposals that were decided in the meantime are left out.
        """
        end, found = trio.current_time() + LOOK_SECONDS, list[ProposalView]()
        for row in rows:
            if trio.current_time() > end:
                found.append(ProposalView(row))
                continue
            try:
                shown = await self._console.parts.get(Proposals).show(row.id)
            except ProposalNotFound:
                continue
            if shown.proposal.is_pending:
                found.append(ProposalView(shown.proposal, shown))
        return found

    async def _read(self, proposal_id: str) -> ProposalView:
        """Return the current state of a proposal. Raises `PageRefused`."""
        try:
            shown = await self._console.parts.get(Proposals).show(proposal_id)
        except ProposalNotFound as refusal:
            raise PageRefused(
                "Unknown proposal. It may have been deleted some time after its decision. See "
                "the page Review.",
                404,
            ) from refusal
        return ProposalView(shown.proposal, shown)

    # -- deciding -----------------------------------------------------------------------------------

    async def decide(self, form: Form) -> str:
        """Approve or reject the selected proposals in the form in which they were displayed.

        Return the URL of the page with the outcomes.
        """
        decision = form.get("act", "")
        if decision not in ("approve", "reject"):
            raise PageRefused(
                "Nothing was decided: this form says neither approve nor reject. Load Review again."
            )
        picked = dict(each.partition(" ")[::2] for each in form.getlist("pick") if each.strip())
        if not picked:
            raise PageRefused("Nothing was decided: no proposal is chosen. Go back and tick the proposals.")
        if len(picked) > MOST_PICKED:
            raise PageRefused(f"Nothing was decided: choose at most {MOST_PICKED} proposals at once.")
        reason = _reason_of(form) if decision == "reject" else None
        seen = set(form.getlist("seen"))
        end, outcomes = trio.current_time() + DECIDE_SECONDS, list[DecisionNotice]()
        for proposal_id, seal in picked.items():
            if trio.current_time() > end:
                outcomes.append(await self._left(proposal_id, "is not decided yet: there was no time left"))
            elif decision == "approve":
                outcomes.append(await self._approve(proposal_id, seal, is_seen=proposal_id in seen))
            else:
                outcomes.append(
                    await self._carry_out(proposal_id, decision, seal=seal or None, reason=reason)
                )
        return self._tell(outcomes, form)

    async def _approve(self, proposal_id: str, seal: str, *, is_seen: bool) -> DecisionNotice:
        """Approve a proposal as it was displayed.

        If the proposal has a warning, the person must confirm it.
        """
        if not seal:
            return await self._left(proposal_id, "was not approved: you have not seen it yet")
        try:
            proposal = await self._read(proposal_id)
        except PageRefused:
            return await self._carry_out(proposal_id, "approve", seal=seal)  # the reply reports it as missing
        if not is_seen and await self._is_warned(proposal):
            return DecisionNotice("warn", proposal_id, proposal.row.path, _UNCONFIRMED)
        return await self._carry_out(proposal_id, "approve", proposal.row, seal=seal)

    async def change(self, form: Form, proposal_id: str) -> str:
        """Approve a proposal with a text that a person edited, or first show the diff of that text."""
        act, text, seal = form.get("act", ""), form.get("text"), form.get("seal", "")
        if act not in ("approve", "look") or text is None or not seal:
            raise PageRefused(
                "Nothing was decided: this form has no text. Start from the page of the proposal."
            )
        proposal = await self._read(proposal_id)
        typed = text.replace("\r\n", "\n").replace("\r", "\n")
        text = read_signs(typed)
        if _has_lines_of_windows(proposal.text or ""):
            text = text.replace("\n", "\r\n")
        if act == "look":
            return self._keep(proposal_id, text, "Below is the change that your text would make.", "ok")
        has_unwritten = any(sign.kind == "hidden" and not sign.is_quiet for sign in find_signs(typed))
        is_seen = proposal_id in form.getlist("seen") and not has_unwritten
        if not is_seen and (has_unwritten or await self._is_warned(proposal, text)):
            message = (
                "Nothing was decided: your text has invisible or look-alike characters. Below, "
                "hidden characters are written as ⟦U+200B⟧. Remove them, or tick the box and "
                "approve again to keep them."
            )
            return self._keep(proposal_id, text, message, "warn")
        outcome = await self._carry_out(proposal_id, "approve", proposal.row, seal=seal, text=text)
        if outcome.ending == "ok":
            return self._tell([outcome], form)
        return self._keep(proposal_id, text, f"Nothing was written: it {outcome.text}", "warn")

    async def _carry_out(
        self, proposal_id: str, decision: str, row: Proposal | None = None, **more: str | None
    ) -> DecisionNotice:
        """Carry out one decision on behalf of the person.

        If `row` is given, the notice of an approval links to the page that undoes it.
        """
        arguments = {name: value for name, value in more.items() if value is not None}
        try:
            answer = await self._console.tools.call(
                "lithos_proposal_decide",
                {"id": proposal_id, "decision": decision, "by": self._console.agent, **arguments},
            )
        except ArgumentFault as fault:
            raise PageRefused(f"Nothing was decided: {fault}") from fault
        done = answer or {}
        if "code" in done:
            return await self._left(proposal_id, *_refusal_of(done))
        title = str(done.get("path") or proposal_id)
        if decision == "reject":
            return DecisionNotice("ok", proposal_id, title, "is rejected; the agent gets the reason")
        version, merged = done.get("version"), done.get("merged_with")
        told = "is approved" + ("" if version is None else f": version {version}")
        told += "" if merged is None else f", merged with later changes by others (version {merged})"
        note_id = str(done.get("note_id") or "")
        return DecisionNotice(
            "ok", proposal_id, title, told, note_id, "" if row is None else _undo_of(row, version)
        )

    async def _is_warned(self, proposal: ProposalView, text: str | None = None) -> bool:
        """Return whether an approval needs a confirmation.

        `text` replaces the proposed text if it is given.
        """
        return proposal.row.is_pending and await self._comparing.run(partial(proposal.is_warned, text))

    async def _left(self, proposal_id: str, text: str, ending: Ending = "warn") -> DecisionNotice:
        """Return the outcome of a proposal that stays undecided, including its title."""
        try:
            return DecisionNotice(ending, proposal_id, (await self._read(proposal_id)).row.path, text)
        except PageRefused:
            return DecisionNotice(ending, proposal_id, proposal_id, text)

    def _tell(self, outcomes: Sequence[DecisionNotice], form: Form) -> str:
        """Store the outcomes. Return the URL of the queue, which shows them next to the next proposal."""
        key = keep(self._reports, outcomes)
        by = form.get("by", "")
        query = query_with({}, by=by if by in GROUPINGS else None, offset=whole(form.get("offset")), done=key)
        after = form.get("next", "")
        return f"/console/review{query}" + (f"#p-{after}" if _ANCHOR.fullmatch(after) else "")

    def _keep(self, proposal_id: str, text: str, message: str, ending: Ending) -> str:
        draft = EditedProposal(proposal_id=proposal_id, text=text, message=message, ending=ending)
        return f"/console/review/{proposal_id}?draft={keep(self._drafts, draft)}#change"


def _undo_of(row: Proposal, version: int | None) -> str:
    """Return the URL of the page that undoes an approved change."""
    if row.kind == "delete" and version is not None:
        version += 1  # A deletion is recorded as a version of its own, one above the deleted version.
    return f"/console/undo{query_with({}, agent=row.agent, note=row.note_id, version=version)}"


def _refusal_of(answer: Mapping[str, Any]) -> tuple[str, Ending]:
    """Return the reason for a refused decision, as the end of a sentence."""
    code = answer["code"]
    if code == "proposal_not_found":
        return "no longer exists", "bad"
    if code == "proposal_closed":
        who, status = answer.get("decided_by"), readable(answer["proposal_status"], 30)
        if status == "pending":
            return f"is being decided at this moment, by {readable(who, 60)}", "warn"
        return f"is {status} already" + (f", by {readable(who, 60)}" if who else ""), "bad"
    if code == "version_conflict" and answer.get("conflicts"):
        places = ", ".join(_place_of(each) for each in answer["conflicts"][:MOST_CONFLICTS])
        return f"conflicts with changes by others ({places}); it stays pending", "warn"
    if code == "version_conflict":
        return "has changed since you opened the page. Check it again", "warn"
    return f"stays pending: {answer['message']}", "bad"


def _place_of(conflict: Mapping[str, Any]) -> str:
    return f"line {conflict['line']}" if "line" in conflict else readable(conflict.get("key", "?"), 60)


def _reason_of(form: Form) -> str:
    """Return the reason for a rejection: an earlier reason or the typed text. Raises `PageRefused`."""
    reason = (form.get("again") or form.get("reason") or "").strip()
    if not reason:
        raise PageRefused(
            "Nothing was decided: a rejection needs a reason for the agent. Go back and give a reason."
        )
    if len(reason) > LONGEST_REASON:
        raise PageRefused(
            f"Nothing was decided: the reason has {plural(len(reason), 'character')}, and at most "
            f"{LONGEST_REASON} are kept. Go back and shorten it."
        )
    return reason


def _grouping() -> str:
    by = given("by", 20)
    return by if by in GROUPINGS else next(iter(GROUPINGS))


def _has_lines_of_windows(text: str) -> bool:
    return text.count("\r\n") == text.count("\n") > 0
