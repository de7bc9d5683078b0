"""How the benchmark of noise tells noise from what notes say."""

from __future__ import annotations

from pathlib import Path

from bench import noise, vault

NOTES = 400


def test_what_is_noise_is_found_by_counting_and_all_else_is_none(tmp_path: Path) -> None:
    vault.generate(tmp_path, NOTES, frames=True)
    found = noise.find_noise(noise.read_texts(tmp_path))
    assert found.share("[Edit In GitHub](https://git.example.org/x) | [Copy this note](https://x.org)") == 1
    assert found.share("%% hub footer: please don't edit anything below this line %%") == 1
    assert found.share("Nobody shares this line.\n\nCopy this note") < 0.5
    assert found.share("Nobody shares this line.") == 0


def test_a_vault_without_frames_has_hardly_any(tmp_path: Path) -> None:
    vault.generate(tmp_path, NOTES)
    texts = noise.read_texts(tmp_path)
    shared = noise.find_noise(texts)
    assert "github" not in shared.shared
    assert len(noise.make_questions(texts, shared, 30, 7)) == 30


def test_of_a_briefing_only_the_excerpts_count() -> None:
    briefing = "## Task\n\nDo it.\n\n## Notes\n\n### A (a.md, v1, A)\nText.\n\n**Empty**\n\n## Left out\n\nB"
    excerpts = noise.notes_of(briefing)
    assert [line for line in excerpts.splitlines() if line] == ["Text.", "**Empty**"]
    assert noise.bare_headings(excerpts) == len("**Empty**") / len("Text.**Empty**")
