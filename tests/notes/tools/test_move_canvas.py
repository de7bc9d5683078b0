"""Canvases that link to a moved note: the move updates only these links."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.notes.files import canvases
from lithos.notes.links import canvas as canvas_module
from lithos.notes.service.moving import Moving
from tests.notes.tools.test_foreign_notes import id_of
from tests.servers import VAULT, Lithos, put_note, refusal, serving

BOARD = (
    '{\n\t"nodes":[\n\t\t{"id":"1","type":"file","file":"Plan.md","subpath":"#Part"},\n'
    '\t\t{"id":"2","type":"text","text":"[[Plan]] \\u2014 [p](../Plan.md)\\n`[[Plan]]`","x":1.0}\n'
    '\t],\n\t"edges":[]\n}'
)  # fmt: skip
AFTER = BOARD.replace('"Plan.md"', '"Archive/Goal.md"').replace('"[[Plan]]', '"[[Goal]]')
AFTER = AFTER.replace("../Plan.md", "../Archive/Goal.md")


async def move(lithos: Lithos, note: str, path: str = "Archive/Goal.md", **more: Any) -> Any:
    return await lithos.call("lithos_note_move", id=note, path=path, agent="mover", **more)


def board(lithos: Lithos, name: str = "maps/board.canvas") -> str:
    return (lithos.knowledge / name).read_bytes().decode()


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    put_note(tmp_path, "Plan.md", "The plan.\n")
    put_note(tmp_path, "maps/board.canvas", BOARD)
    put_note(tmp_path, "other.canvas", BOARD.replace("Plan", "Another"))
    return tmp_path


async def test_canvas_links_follow_a_move_and_its_reversal(vault: Path) -> None:
    """behaviour 374"""
    async with serving(vault, storage=VAULT) as lithos:
        note = await id_of(lithos, "Plan")
        answer = await move(lithos, note)
        assert (answer["canvases"], answer["rewritten"], board(lithos)) == (["maps/board.canvas"], [], AFTER)
        assert board(lithos, "other.canvas") == BOARD.replace("Plan", "Another")
        await move(lithos, note, "Plan.md")
        assert board(lithos) == BOARD
        assert "canvases" not in await move(lithos, note, update_links=False)
        assert board(lithos) == BOARD


async def test_unreadable_canvas_is_listed_in_the_move_answer(vault: Path) -> None:
    """behaviour 374"""
    put_note(vault, "cut.canvas", BOARD[:-1])
    os.symlink(vault / "knowledge/maps/board.canvas", vault / "knowledge/link.canvas")
    async with serving(vault, storage=VAULT) as lithos:
        answer = await move(lithos, await id_of(lithos, "Plan"))
        told = " ".join(answer["warnings"])
        assert "cut.canvas were not updated: the canvas is not valid JSON" in told
        assert "link.canvas were not updated: the canvas is a symbolic link" in told
        assert (board(lithos, "cut.canvas"), board(lithos)) == (BOARD[:-1], AFTER)
        assert not list((vault / ".lithos" / "moves").glob("*.json"))


async def test_move_that_would_change_a_protected_canvas_is_refused(vault: Path) -> None:
    """behaviour 374: a protected note with such links prevents the move as well."""
    storage = {**VAULT, "protected": ["maps/**"]}
    async with serving(vault, storage=storage) as lithos:
        note = await id_of(lithos, "Plan")
        assert "maps/board.canvas" in refusal(await move(lithos, note), "forbidden")
        assert (board(lithos), (lithos.knowledge / "Plan.md").is_file()) == (BOARD, True)


async def test_canvas_saved_during_the_move_keeps_both_changes(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 374"""
    relink, saved = canvas_module.relink_canvas, BOARD.replace('"x":1.0', '"x":2.0')
    file = vault / "knowledge/maps/board.canvas"

    def save_meanwhile(*given: Any) -> bytes:
        if file.read_text() == BOARD:
            file.write_text(saved)
        return relink(*given)

    monkeypatch.setattr(canvases, "relink_canvas", save_meanwhile)
    async with serving(vault, storage=VAULT) as lithos:
        answer = await move(lithos, await id_of(lithos, "Plan"))
        assert (answer["canvases"], board(lithos)) == (
            ["maps/board.canvas"],
            AFTER.replace('"x":1.0', '"x":2.0'),
        )


async def test_interrupted_move_updates_its_canvases_at_the_next_start(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 374"""
    stopped = trio.Event()

    async def stop(*_: object) -> None:
        stopped.set()
        await trio.sleep_forever()

    async with serving(vault, storage=VAULT) as lithos:
        note = await id_of(lithos, "Plan")
        with monkeypatch.context() as patch:
            patch.setattr(Moving, "_relink_canvases", stop)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(move, lithos, note)
                await stopped.wait()
                nursery.cancel_scope.cancel()
        assert board(lithos) == BOARD
    async with serving(vault, storage=VAULT) as lithos:
        await lithos.server.get(Moving).resumed.wait()
        assert board(lithos) == AFTER
        assert not list((vault / ".lithos" / "moves").iterdir())
