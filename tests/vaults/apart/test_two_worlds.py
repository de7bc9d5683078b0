"""Hidden vault, which must not change a byte of a token's answers.

Compares calls with and without the hidden vault.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from lithos.kernel.configuration.catalogue import Config
from lithos.search.indexing.indexer import Visibility
from tests.servers import Clock
from tests.vaults.apart.hosting import Hosted, body_of, config_of, hosting, let_in, put
from tests.vaults.apart.test_as_alone import Ids, Recording, differences

TOKEN: Final = "token-of-work"
OTHER: Final = "token-of-another"
WORDS: Final = ("basil", "water", "tents", "staking", "node", "garden", "release")
CALLS: Final = 150
READING: Final = (
    "search", "retrieve", "context", "list", "tags", "stats", "task_list", "task_next", "semantic",
    "task_ready", "agent_list", "edge_list", "history", "read", "related", "task_status", "links",
)  # fmt: skip
CHANGING: Final = ("write", "write", "task_create", "task_claim", "finding_post", "note_move")
PATHS: Final = (
    "/mcp", "/v/work/health", "/health", "/metrics", "/v/work/audit", "/v/home/audit", "/v/secret/audit",
    "/v/secret/mcp",
    "/v/nothing/mcp", "/console/", "/v/secret/console/", "/nowhere", "/v/secret/", "/v/secret",
)  # fmt: skip


def set_up(root: Path, *, has_third: bool) -> dict[str, Config]:
    """Create two vaults for the token. In one of the two worlds, also create a third vault."""
    for name, base in (("work", "Release"), ("home", "Garden")):
        notes = {
            f"{base.lower()}/{word}.md": f"---\ntags: [{name}, {word}]\n---\n# {base} {word}\n\nOf {word} "
            f"and {WORDS[place - 1]}, see [[{WORDS[place - 2]}]].\n"
            for place, word in enumerate(WORDS)
        }
        put(root / name, notes)
        let_in(root / f"{name}-data", TOKEN, name="own")
    configs = {name: config_of(root / name, root / f"{name}-data") for name in ("work", "home")}
    if has_third:
        notes = {
            f"garden/{word}{n}.md": f"# {word} {n}\n\nBasil {word} water {n}\n"
            for word in WORDS
            for n in range(40)
        }
        put(root / "secret", notes)
        let_in(root / "secret-data", OTHER, name="own")
        configs = {"secret": config_of(root / "secret", root / "secret-data"), **configs}
    return configs


def story(seed: int, *, changes: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield tool calls with name and arguments.

    The arguments refer to objects by kind or order, not by id.
    """
    chance = random.Random(seed)
    for _ in range(CALLS):
        word = chance.choice(WORDS)
        vault = chance.choice(("work", "home", None, None, "*", "secret", "nothing"))
        own: dict[str, Any] = {} if vault is None else {"vault": vault}
        kind = chance.choice((*READING, *READING, *(CHANGING if changes else ())))
        match kind:
            case "search" | "retrieve" | "context" | "semantic":
                yield kind, own | {"query": f"{word} {chance.choice(WORDS)}"}
            case "write":
                yield (
                    kind,
                    own | {"title": f"{word} {chance.random()}", "content": f"On {word}.", "agent": "ann"},
                )
            case "task_create":
                yield kind, own | {"title": f"Do {word}", "agent": "ann"}
            case "task_claim":
                yield kind, own | {"task_id": "task", "aspect": word, "agent": "ann"}
            case "finding_post":
                yield kind, own | {"task_id": "task", "summary": word, "agent": "ann"}
            case "note_move":
                target = chance.choice(("home", "secret", "nothing"))
                yield (
                    kind,
                    own
                    | {"id": "id", "agent": "ann", "path": f"moved/{chance.random()}.md", "to_vault": target},
                )
            case "task_next":
                yield kind, own | {"agent": "bob"}
            case "read" | "history" | "related" | "links":
                yield kind, own | chance.choice(({"id": "id"}, {"path": f"garden/{word}.md"}))
            case "task_status":
                yield kind, own | {"task_id": "task"}
            case _:
                yield kind, own


async def play(hosted: Hosted, ids: Ids, seed: int, *, changes: bool) -> Recording:
    """Play the story with the token. If the third vault exists, it changes meanwhile."""
    recording = Recording(hosted, "", is_changing=changes)
    ids.drawn.clear()
    made = {"id": "00000000-0000-4000-8000-000000000000", "task": "none"}
    for number, (kind, asked) in enumerate(story(seed, changes=changes)):
        if "secret" in hosted.vaults.hosted and number % 10 == 0:
            # Other vaults take their ids from a separate sequence.
            drawn = ids.drawn.copy()
            await hosted.ask(
                "/v/secret/mcp", OTHER, "lithos_write", title=f"S {number}", content="basil", agent="ann"
            )
            ids.drawn = drawn
        for name in ("work", "home"):
            await hosted.server(name).searchable()
        arguments = {
            key: made.get(value, value) if key in ("id", "task_id") else value for key, value in asked.items()
        }
        received = await hosted.call("/mcp", TOKEN, f"lithos_{kind}", **arguments)
        recording.keep(f"{kind} {asked}", received)
        answer = json.loads(body_of(received)).get("result", {}).get("structuredContent") or {}
        made["id"] = answer.get("id", made["id"])
        made["task"] = answer.get("task_id", made["task"])
        for name in ("work", "home"):
            await hosted.server(name).searchable()
            await hosted.server(name).get(Visibility).reach()  # The gauges show the content of an index.
        path = PATHS[number % len(PATHS)]
        recording.keep(path, await hosted.exchange(path, TOKEN))
    return recording


@pytest.mark.slow
@pytest.mark.takes(20)
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("changes", [False, True], ids=["reading", "changing"])
async def test_hidden_vault_does_not_change_any_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, changes: bool
) -> None:
    """behaviour 294: the same calls return the same bytes with and without a third vault."""
    ids = Ids()
    monkeypatch.setattr(uuid, "uuid4", ids.draw)
    worlds: list[Recording] = []
    for has_third in (False, True):
        root = tmp_path / "world"
        configs = set_up(root, has_third=has_third)
        async with hosting(configs, clock=Clock(), default="work") as hosted:
            worlds.append(await play(hosted, ids, seed, changes=changes))
        await trio.to_thread.run_sync(root.rename, tmp_path / f"played {len(worlds)}")
    one, other = worlds
    assert len(one.entries) == 2 * CALLS
    answered = [
        text for _, text in one.entries if '"structuredContent"' in text and '"status":"error"' not in text
    ]
    assert len(answered) > CALLS // 3
    found = [told for _, told in differences(one, other)]
    assert not found, f"{len(found)} of {len(one.entries)} differ:\n" + "\n\n".join(found[:25])
