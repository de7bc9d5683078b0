"""A complete server that indexes transcripts, for tests of tools and pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any, Final

from lithos.kernel.values.principals import Principal
from lithos.sessions.following.follower import SessionFollower
from lithos.sessions.settings import SessionsConfig
from tests.fakes import Clock
from tests.servers import Lithos, serving
from tests.sessions.transcripts import answer, prompt
from tests.text.secrets.made import PROVIDERS

NOW: Final = datetime(2026, 11, 29, 12, tzinfo=UTC)
DECISION: Final = "We decided that the login cookie expires at midnight UTC, as shops trade across zones."
SECRET: Final = PROVIDERS["github"](Random(7))
QUESTION: Final = "When does the login cookie expire, and why?"


def put_sessions(folder: Path) -> None:
    """Write the transcripts of two projects. The second turn of the first has the decision."""
    folder.mkdir(parents=True, exist_ok=True)
    shop = [
        prompt("Why are customers signed out?", "shop"),
        answer(DECISION, "shop"),
        prompt(f"Then the invoices <b>now</b>, please. The key is {SECRET}.", "shop", at="10:00"),
        answer("The invoices are migrated.", "shop", at="10:05"),
    ]
    (folder / "shop.jsonl").write_text("".join(shop))
    bakery = [
        prompt("How hot is the oven?", "bakery", "/srv/made-up/bakery", "11:00"),
        answer("Bake the biscuits at 180 degrees for twelve minutes.", "bakery", at="11:01"),
    ]
    (folder / "bakery.jsonl").write_text("".join(bakery))


@asynccontextmanager
async def serving_sessions(
    folder: Path,
    *,
    is_added: bool = True,
    sessions: Mapping[str, Any] = MappingProxyType({}),
    **sections: Any,
) -> AsyncIterator[Lithos]:
    """Run a server that has read the transcripts of `put_sessions`. Its clock shows noon a day later."""
    put_sessions(folder / "transcripts")
    added = (str(folder / "transcripts"),) if is_added else ()
    config = SessionsConfig(**{"folders": added, **sessions})
    async with serving(folder / "data", clock=Clock(NOW), sessions=config, **sections) as lithos:
        await lithos.server.get(SessionFollower).caught_up()
        yield lithos


async def call_as(lithos: Lithos, caller: Principal, tool: str, /, **arguments: Any) -> Any:
    """Return the answer that a caller gets."""
    return await lithos.server.tools.call(tool, arguments, caller)
