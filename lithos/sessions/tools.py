"""The tool through which a command removes a session from the index."""

from __future__ import annotations

from lithos.kernel.parts import Parts
from lithos.server.tools.arguments import argument
from lithos.server.tools.bounds import LOOKUP
from lithos.server.tools.declaring import OWN, Answer, tool
from lithos.sessions.service.sessions import Sessions


@tool("lithos_session_forget", OWN, "I", place=55)
class ForgetSessionTool:
    """Remove a session from the index, and never index its transcript again. The transcript stays."""

    id: str = argument("Session id.", bound=LOOKUP)

    async def answer(self, using: Parts) -> Answer:
        return {"id": self.id, "removed": await using.get(Sessions).forget(self.id)}
