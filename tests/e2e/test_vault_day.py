"""Nothing in a vault changes but what calls are about, whatever goes on in the background."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.vault import FILES
from tests.e2e.vault_day import Entry, live_a_day

#: Prose with names in it, such as enrichment looks for.
PROSE = """\
---
# kept by hand
tags: [people, number-{0}]   # mine
---
# Meeting {0}

Yesterday Grace Hopper showed Alan Turing the compiler numbered {0} in the laboratory of Bletchley Park.
Afterwards everybody discussed the remarkable machinery of Manchester University.{1}
"""


def make_vault(folder: Path) -> Path:
    """A vault of a hundred notes, with all that people keep beside them."""
    notes = {
        f"Meetings/Meeting {number}.md": PROSE.format(number, number + 1).encode() for number in range(100)
    }
    for path, content in {**FILES, **notes, ".gitignore": b"*.tmp\n"}.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder


@pytest.mark.slow
def test_git_says_in_the_evening_what_was_asked_for_and_nothing_else(tmp_path: Path) -> None:
    """Behaviour 249: agents and a person at work, then rest, with enrichment every second."""
    ledger, done = live_a_day(make_vault(tmp_path / "vault"), tmp_path / "data", seconds=40.0, resting=10.0)
    assert done > 200
    assert len(ledger.status()) > 20
    assert ledger.find_unasked() == []


@pytest.mark.parametrize(
    ("found", "foul"),
    [
        ("---\n# mine\ntags: [x]\nid: a\n---\n\nText.\n", None),
        ("---\n# mine\ntags: [x]\nid: b\n---\n\nText.\n", "is not a 2"),
        ("---\n# mine\ntags: [x]\nid: a\nversion: 2\n---\n\nText.\n", "version"),
        ("---\n# mine\ntags: [x]\nid: a\nentities: [Text]\n---\n\nText.\n", "entities"),
        ("---\n# mine\ntags: [x]\nid: a\nversion: 3\n---\n\nText.\n", "is not a 2"),
        ("---\ntags: [x]\nid: a\n---\n\nText.\n", "n.md: "),
        ("---\n# mine\ntags: [x]\nid: a\n---\n\nTexts.\n", "is not 'Text.'"),
    ],
)
def test_what_nobody_asked_for_is_seen(found: str, foul: str | None) -> None:
    entry = Entry("---\n# mine\ntags: [x]\n---\nText.\n", "a", 2, is_stamped=True)
    told = entry.fouls("n.md", found)
    assert told == [] if foul is None else any(foul in line for line in told)
    assert Entry("Text.\n").fouls("n.md", "Text.\n") == []
    assert Entry("Text.\n").fouls("n.md", found) != []
