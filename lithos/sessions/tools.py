"""The tools through which commands read a session, and remove one from the index."""

from __future__ import annotations

from lithos.kernel.parts import Parts
from lithos.server.tools.arguments import argument
from lithos.server.tools.bounds import LOOKUP
from lithos.server.tools.declaring import OWN, Answer, tool
from lithos.server.tools.fitting import CuttableAnswer
from lithos.sessions.answers.answering import session_row, turn_row
from lithos.sessions.answers.past import SessionAnswers
from lithos.sessions.service.sessions import Sessions


@tool("lithos_session_forget", OWN, "I", place=55)
class ForgetSessionTool:
    """Remove a session from the index, and never index its transcript again. The transcript stays."""

    id: str = argument("Session id.", bound=LOOKUP)

    async def answer(self, using: Parts) -> Answer:
        return {"id": self.id, "removed": await using.get(Sessions).forget(self.id)}


@tool("lithos_session_show", OWN, "RI", place=56, paged=CuttableAnswer(rows=("rows",)))
class ShowSessionTool:
    """Show a session turn by turn, or one turn with its neighbours. An address may name the turn."""

    id: str = argument("Id or address of the session.", bound=LOOKUP)
    turn: int | None = argument("Only this turn and its neighbours.", None)
    offset: int = argument("Number of turns to skip.", 0, is_listed=False)

    async def answer(self, using: Parts) -> Answer:
        answers, more = using.get(SessionAnswers), dict[str, int]()
        address = await answers.address(self.id, self.turn)
        if address.turn is None:
            part = await answers.part(address.session, self.offset)
            end = max(0, self.offset) + len(part.turns)
            more = {"next_offset": end} if end < part.total else {}
        else:
            part = await answers.part_around(address)
        rows = [turn_row(turn) for turn in part.turns]
        return {**session_row(part.session), "turn": address.turn, "rows": rows, "total": part.total} | more
