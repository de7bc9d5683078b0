"""Real server with the real model.

The server is killed repeatedly while it embeds, and continues from its last save.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import Lithos, running_lithos, start_lithos
from tests.servers import put_note

NOTES = 400
ENVIRONMENT = {"LITHOS_SEARCH__TIER": "auto"}
#: Fractions of embedded notes at which the server is killed. The last kill comes just before the switch to
#: the new model.
KILLS = (0.1, 0.5, 0.985)


def embedding(server: Lithos) -> dict[str, Any]:
    return dict(server.health()[1]["embedding_model"])


def wait_for(server: Lithos, share: float, within: float = 60.0) -> dict[str, Any]:
    """Poll `/health` every 10 ms.

    Return the first answer in which this fraction of the chunks is embedded.
    """
    until = time.monotonic() + within
    while time.monotonic() < until:
        told = embedding(server)
        if told["total"] == NOTES and told["done"] >= share * NOTES:
            return told
        time.sleep(0.01)
    raise AssertionError(f"not {share:.1%} within {within} s: {embedding(server)}")


def saved(data: Path) -> int:
    manifest = data / ".usearch" / "accurate" / "manifest.json"
    return int(json.loads(manifest.read_text())["chunks"]) if manifest.exists() else 0


@pytest.mark.slow
@pytest.mark.disk
@pytest.mark.takes(18)
@pytest.mark.deadline(200)
@pytest.mark.nightly
def test_kills_during_embedding_lose_at_most_one_second_of_work(tmp_path: Path) -> None:
    """behaviour 262"""
    data = tmp_path / "data"
    for number in range(NOTES):
        text = f"A leader number {number} replicates its log entries to a majority of voters. " * 3
        put_note(data, f"n{number}.md", f"# Note {number}\n\n{text}\n")
    before = 0
    for share in KILLS:
        server = start_lithos(data, env=ENVIRONMENT)
        try:
            first = wait_for(server, 0)
            assert first["tier"] == "static"
            told = wait_for(server, share)
            assert told["tier"] == "static" or told["done"] >= 0.99 * NOTES
            server.kill()
        finally:
            server.close()
        assert saved(data) >= before, "what was saved stays"
        before = saved(data)
    assert before >= 0.5 * NOTES, "almost nothing was saved"
    server = start_lithos(data, env=ENVIRONMENT)
    try:
        while embedding(server)["tier"] == "static":  # the server was killed during the switch
            time.sleep(0.002)
        server.kill()
    finally:
        server.close()
    with running_lithos(data, env=ENVIRONMENT) as again:
        told = wait_for(again, 1)
        assert (told["tier"], told["status"]) == ("accurate", "ok")
    assert saved(data) == NOTES
    with running_lithos(data, env=ENVIRONMENT) as last:
        begun = time.monotonic()
        assert wait_for(last, 1)["tier"] == "accurate"
        assert time.monotonic() - begun < 10, "nothing is embedded again"
