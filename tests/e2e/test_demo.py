"""`lithos demo`: every scene uses real calls, and no file remains."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import httpx2
import pytest

from tests.browser.conftest import staying
from tests.e2e.process import run_lithos, until

pytestmark = pytest.mark.slow


def test_demo_runs_every_scene_and_leaves_no_files(tmp_path: Path) -> None:
    done = run_lithos("demo", "--json", cwd=tmp_path, env={"TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    shown = [json.loads(line) for line in done.stdout.splitlines()]
    calls = [(item["tool"], item["answer"]) for item in shown if "tool" in item]
    lookups = [answer["hit"] for tool, answer in calls if tool == "lithos_cache_lookup"]
    assert lookups == [False, True], "one agent wrote what the other found"
    claims = [answer for tool, answer in calls if tool == "lithos_task_claim"]
    assert sorted(answer.get("code", "won") for answer in claims) == ["claim_failed", "won"]
    assert [item["event"]["type"] for item in shown if "event" in item] == ["finding.posted"]
    searches = [item for item in shown if item.get("tool") == "lithos_search"]
    assert [item["arguments"]["mode"] for item in searches] == ["fulltext", "semantic", "hybrid"]
    assert all(item["answer"]["results"][0]["title"] == "Raft leader election" for item in searches)
    assert list(tmp_path.iterdir()) == []


def test_demo_shows_its_calls_and_suggests_next_steps(tmp_path: Path) -> None:
    done = run_lithos("demo", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.count(" -> lithos_") == 14
    for command in ("lithos serve --transport http", "lithos connect claude-code", "lithos search"):
        assert command in done.stdout.split("Next:")[1]
    assert max(map(len, done.stdout.splitlines())) < 160


def test_demo_data_fills_every_console_page(tmp_path: Path) -> None:
    """Covers the pages Review, Copies and Care, and the list of contradictions."""
    with staying() as url, httpx2.Client(base_url=f"{url}/console", timeout=60, verify=False) as client:
        review = client.get("/review").text
        for told in ("Runbook: timetable import", "Why line 12 is late", "archive/import-old-way.md"):
            assert told in review
        assert "U+200B ZERO WIDTH SPACE" in review
        assert review.count('name="seen"') == 1, "one of them takes a confirmation"
        copies = client.get("/copies").text
        assert "glossary.sync-conflict-" in copies
        (place,) = re.findall(r'href="/console(/copies/one[^"]+)"', copies)
        assert "both versions changed it" in client.get(unescape(place)).text
        # The first page request starts the note checks but does not wait for them.
        until(lambda: "1 with a conflict copy" in client.get("/").text)
        overview = client.get("/").text
        assert "4 proposals to review" in overview
        assert "/console/contradictions?" in overview
        assert "1 with a conflict copy" in overview
