"""A program that edits note files directly and records their content."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from uuid import UUID

import trio
from attrs import define, field

from tests.e2e.clients import WireClient
from tests.e2e.process import Lithos

FOLDER = "outside"
#: Seconds between two edits. This is shorter than the watcher's debounce time.
PAUSE = 0.01


@define
class Sheet:
    """One file: its number, its number of writes, and whether it contains an id."""

    number: int
    version: int
    has_id: bool

    @property
    def token(self) -> str:
        return f"o{self.number}u{self.version}t"

    @property
    def id(self) -> str:
        return str(UUID(int=(0xF << 120) + self.number))

    def text(self) -> str:
        head = f"---\nid: {self.id}\ntags: [outside]\n---\n" if self.has_id else ""
        links = f"[[sheet-{self.number // 2}]] [[note-{self.number % 16}-{self.number // 16}]]"
        return f"{head}# Sheet {self.number}\n\nToken {self.token}. {links}\n" + "filler\n" * (
            self.number % 30
        )


@define(eq=False)
class Outsider:
    """A program that edits files below one folder.

    `sheets` contains the existing files, by path in `knowledge/`.
    """

    folder: Path
    seed: int
    sheets: dict[str, Sheet] = field(factory=dict)
    edits: Counter[str] = field(factory=Counter)

    async def edit(self, server: Lithos) -> None:
        """Edit files until the server has ended, and for a short time afterwards."""
        random = Random(f"{self.seed} {self.edits.total()}")
        while server.process.poll() is None:
            self.edit_once(random)
            await trio.sleep(PAUSE)
        for _ in range(5):
            self.edit_once(random)

    def edit_once(self, random: Random) -> None:
        kinds = ["create", "overwrite", "replace", "rename", "delete"]
        kind = random.choices(kinds, [4, 4, 4, 3, 2])[0] if self.sheets else "create"
        self.edits[kind] += 1
        if kind == "create":
            sheet = Sheet(self.edits["create"], 1, has_id=self.edits["create"] % 3 != 0)
            self._put(f"{FOLDER}/sheet-{sheet.number}.md", sheet)
            return
        path = random.choice(list(self.sheets))
        sheet = self.sheets[path]
        if kind == "delete":
            (self.folder / path).unlink()
            del self.sheets[path]
        elif kind == "rename":
            moved = f"{FOLDER}/moved-{self.edits['rename'] % 7}/sheet-{sheet.number}.md"
            if moved != path:
                (self.folder / moved).parent.mkdir(exist_ok=True)
                (self.folder / path).rename(self.folder / moved)
                self.sheets[moved] = self.sheets.pop(path)
        else:
            sheet.version += 1
            self._put(path, sheet, is_atomic=kind == "replace")

    def _put(self, path: str, sheet: Sheet, *, is_atomic: bool = False) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if is_atomic:
            staged = target.with_name(f"{target.name}.swp")
            staged.write_text(sheet.text())
            staged.replace(target)
        else:
            with target.open("w") as file:  # some programs also write a file in two pieces
                text = sheet.text()
                file.write(text[: len(text) // 2])
                file.flush()
                file.write(text[len(text) // 2 :])
        self.sheets[path] = sheet

    async def settled(self, client: WireClient, within: float = 30.0) -> dict[str, str]:
        """Wait until the server lists exactly the existing files. Return the note ids by path."""
        with trio.move_on_after(within):
            while True:
                items = (await client.call("lithos_list", path_prefix=f"{FOLDER}/", limit=100_000))["items"]
                listed = {item["path"]: item["id"] for item in items}
                if listed.keys() == self.sheets.keys() and await self._is_found(client):
                    return listed
                await trio.sleep(0.1)
        raise AssertionError(f"listed but gone or not listed: {listed.keys() ^ self.sheets.keys()}")

    async def _is_found(self, client: WireClient) -> bool:
        """Return whether search finds every current text at its path."""
        for path, sheet in self.sheets.items():
            answer = await client.call("lithos_search", query=sheet.token, mode="fulltext")
            if [row["path"] for row in answer["results"]] != [path]:
                return False
        return True
