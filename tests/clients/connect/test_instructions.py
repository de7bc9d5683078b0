"""The block for Lithos in AGENTS.md: nothing outside of it ever changes (behaviour 316)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.app.capabilities import all_tools
from lithos.app.main import main
from lithos.clients.connect import instructions
from lithos.clients.connect.files import CannotUse, ChangedMeanwhile
from lithos.clients.connect.instructions import (
    BEGIN,
    END,
    MOST_LINES,
    UnclearBlock,
    block,
    change_instructions,
    removed,
    renewed,
)
from lithos.clients.plugin.writing import make_skill
from lithos.server.mcp.trigger import TRIGGER

BLOCK = block("codex@box")
OTHER = f"{BEGIN}\nan older text\n{END}"
#: Lines that touch the edges: code fences, line endings, and comments that look like those of the block.
LINES = st.lists(
    st.sampled_from(
        ["# Rules", "", "text", "```", "~~~", "<!-- other -->", "x <!-- lithos:begin -->", "é", "\t"]
    ),
    max_size=8,
)


@given(LINES, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_removing_a_new_block_restores_every_byte(lines: list[str], ending: str, is_open: bool) -> None:
    """behaviour 316"""
    text = ending.join(lines) + ("" if is_open or not lines else ending)
    try:
        written = renewed(text, BLOCK)
    except UnclearBlock:
        assert len(re.findall(r"^(```|~~~)", text, re.MULTILINE)) > 0
        return
    assert written.replace("\r\n", "\n").count(BLOCK) == 1
    assert written.startswith(text)
    assert removed(written) == text
    assert renewed(written, BLOCK) == written


@given(LINES, LINES, st.sampled_from(["\n", "\r\n"]))
def test_renewing_keeps_everything_outside_the_comments(
    before: list[str], after: list[str], ending: str
) -> None:
    """behaviour 316"""
    above, below = ["intro", *before], [*after, "end"]
    if "```" in above or "~~~" in above:
        return
    text = ending.join([*above, *OTHER.split("\n"), *below])
    new = ending.join([*above, *BLOCK.split("\n"), *below])
    assert renewed(text, BLOCK) == new


def test_block_is_short_and_names_existing_tools() -> None:
    """docs/spec/integration.md §2"""
    assert len(BLOCK.splitlines()) <= MOST_LINES
    assert f"\n{TRIGGER}.\n" in BLOCK
    assert TRIGGER in make_skill().replace("`", "")
    tools = {tool.name for tool in all_tools()}
    assert set(re.findall(r"lithos_\w+", BLOCK)) <= tools
    assert "codex@box" in BLOCK


def test_block_in_fenced_code_is_an_example() -> None:
    text = f"Write this:\n\n```\n{OTHER}\n```\n"
    assert renewed(text, BLOCK) == f"{text}{BLOCK}\n"
    assert removed(text) == text


@pytest.mark.parametrize(
    "text", [f"{OTHER}\n{OTHER}\n", f"{BEGIN}\nno end\n", f"{END}\n{BEGIN}\n", "```\ncode without an end\n"]
)
def test_unclear_block_is_refused_and_the_file_stays(tmp_path: Path, text: str) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_text(text)
    with pytest.raises(UnclearBlock):
        change_instructions(path, BLOCK)
    assert path.read_text() == text
    assert [each.name for each in tmp_path.iterdir()] == ["AGENTS.md"]


def test_file_of_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_bytes(b"caf\xe9\n")
    with pytest.raises(CannotUse, match="not UTF-8"):
        change_instructions(path, BLOCK)
    assert path.read_bytes() == b"caf\xe9\n"


def test_mark_link_and_permissions_of_the_file_stay(tmp_path: Path) -> None:
    real, path = tmp_path / "real.md", tmp_path / "CLAUDE.md"
    real.write_bytes(b"\xef\xbb\xbfRules\r\n")
    real.chmod(0o640)
    path.symlink_to(real)
    assert change_instructions(path, BLOCK) == "added"
    assert path.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert real.read_bytes() == b"\xef\xbb\xbfRules\r\n" + BLOCK.replace("\n", "\r\n").encode() + b"\r\n"
    assert change_instructions(path, None) == "removed"
    assert real.read_bytes() == b"\xef\xbb\xbfRules\r\n"


def test_change_by_an_editor_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_text("one\n")
    replace = instructions.replace_config
    saves = iter(["one\ntwo\n"])

    def save_first(file: object, data: bytes | None) -> None:
        if saved := next(saves, None):
            path.write_text(saved)
        replace(file, data)  # type: ignore[arg-type]

    monkeypatch.setattr(instructions, "replace_config", save_first)
    assert change_instructions(path, BLOCK) == "added"
    assert path.read_text() == f"one\ntwo\n{BLOCK}\n"


def test_file_that_is_always_being_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: object, data: bytes | None) -> None:
        raise ChangedMeanwhile

    monkeypatch.setattr(instructions, "replace_config", refuse)
    with pytest.raises(CannotUse, match="another program"):
        change_instructions(tmp_path / "AGENTS.md", BLOCK)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["connect", *arguments])
    done = capsys.readouterr()
    return code, done.out + done.err


def test_command_adds_renews_and_removes_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """behaviour 316"""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LITHOS_DATA_DIR", str(tmp_path / "data"))
    path = tmp_path / "AGENTS.md"
    path.write_text("# Rules\n")
    code, told = run(capsys, "--instructions", "AGENTS.md")
    assert (code, "was added" in told) == (0, True)
    code, told = run(capsys, "--instructions", "AGENTS.md", "--agent", "ann", "--json")
    assert (code, json.loads(told)) == (0, {"path": str(path), "action": "renewed"})
    assert path.read_text() == f"# Rules\n{block('ann')}\n"
    assert run(capsys, "--instructions", "AGENTS.md", "--agent", "ann")[1].endswith("is unchanged.\n")
    code, told = run(capsys, "--instructions", "AGENTS.md", "--remove")
    assert (code, path.read_text()) == (0, "# Rules\n")
    code, told = run(capsys, "codex", "--instructions", "AGENTS.md")
    assert (code, "without client" in told) == (2, True)
    code, told = run(capsys, "--instructions", "AGENTS.md", "--agent", f"ann\n{END}")
    assert (code, "one line" in told, path.read_text()) == (2, True, "# Rules\n")
    path.write_text(f"{BEGIN}\n")
    code, told = run(capsys, "--instructions", "AGENTS.md")
    assert (code, "Keep one pair" in told, path.read_text()) == (1, True, f"{BEGIN}\n")
