"""Upgrade of an old manifest: the next start finds the new kinds of links and emits no events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from lithos.notes.catalogue import note_reading
from lithos.notes.catalogue.catalogue import Catalogue
from tests.notes.tools.test_foreign_notes import id_of
from tests.servers import VAULT, put_note, serving


def as_older(tmp_path: Path) -> None:
    """Turn the manifest into one of an older Lithos, without links and without a link format number."""
    connection = apsw.Connection(str(tmp_path / ".lithos" / "manifest.db"))
    connection.execute("DELETE FROM meta WHERE name='links'")
    connection.execute("UPDATE files SET links=''")
    connection.close()


async def test_links_are_added_to_an_older_manifest_once_without_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 371"""
    put_note(tmp_path, "2026-11-28.md", "A day\n")
    put_note(tmp_path, "a.md", '---\nup: "[[2026-11-28]]"\n---\n')
    async with serving(tmp_path, storage=VAULT) as lithos:
        day = await id_of(lithos, "2026-11-28")
        serials = {entry.path: entry.serial for entry in lithos.server.get(Catalogue)}
    as_older(tmp_path)
    async with serving(tmp_path, storage=VAULT) as lithos:
        related = await lithos.call("lithos_related", id=day, include=["links"])
        assert [row["title"] for row in related["links"]["incoming"]] == ["a"]
        assert lithos.events() == []
        assert {entry.path: entry.serial for entry in lithos.server.get(Catalogue)} == serials
    read: list[str] = []
    parse = note_reading.parse_identified

    def parse_noted(data: bytes, path: str, *more: Any) -> Any:
        read.append(path)
        return parse(data, path, *more)

    monkeypatch.setattr(note_reading, "parse_identified", parse_noted)
    async with serving(tmp_path, storage=VAULT) as lithos:
        related = await lithos.call("lithos_related", id=day, include=["links"])
        assert [row["title"] for row in related["links"]["incoming"]] == ["a"]
        assert read == []
