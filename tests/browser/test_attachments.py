"""Attachment pages in a browser (docs/spec/attachments.md)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.attachments.extraction.pdf_files import pdf
from tests.browser.driving import Browser
from tests.browser.test_states import LOOKS, judged
from tests.e2e.feeds import call_tool
from tests.e2e.process import running_lithos, until

pytestmark = [pytest.mark.slow, pytest.mark.takes(15)]
PAGES = (
    "attachments",
    "attachments?kind=pdf",
    "attachments/papers/lease.pdf",
    "attachments/papers/lease.pdf?place=1",
    "attachments/papers/lease.pdf?place=2",
    "attachments/papers/plan.svg",
    "attachments/board.canvas",
    "search?q=notice+period",
)
#: Rows with a page, its text, and the pages that it links to.
LEAVES = (
    ("1", "notice period", ["page 2 →"]),
    ("2", "no text", ["← page 1", "page 3 →"]),
    ("3", "Signed", ["← page 2"]),
)
DRAWN = "return document.querySelector('.attachment-picture').naturalWidth"
SAID = "return document.querySelector('main').innerText"


def test_attachment_page_shows_its_image_next_to_its_text(window: Browser, tmp_path: Path) -> None:
    """behaviours 235, 290"""
    vault = tmp_path / "vault"
    (vault / "papers").mkdir(parents=True)
    (vault / "Lease.md").write_text("# Lease\n\n![[lease.pdf]]\n\nThe plan: ![[plan.svg]]\n")
    (vault / "papers/lease.pdf").write_bytes(pdf("The notice period is nine months", "", "Signed"))
    (vault / "papers/plan.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    card = {"id": "c", "type": "text", "text": "Zebra"}
    (vault / "board.canvas").write_text(json.dumps({"nodes": [card]}))
    asked = {"query": "nine months", "kinds": ["attachment"]}
    with running_lithos(tmp_path / "data", env={"LITHOS_STORAGE__VAULT": str(vault)}) as server:
        until(lambda: call_tool(server, "lithos_search", **asked)["results"])
        window.visit(server.url)
        for number, page in enumerate(PAGES):
            window.look_as(*LOOKS[number % 2])
            judged(window, f"/console/{page}")
        for place, text, links in LEAVES:
            window.open(f"/console/attachments/papers/lease.pdf?place={place}")
            until(lambda: window.driver.execute_script(DRAWN) > 500)
            said = window.driver.execute_script(SAID)
            assert text in said
            assert re.findall("← page [0-9]+|page [0-9]+ →", said) == links
