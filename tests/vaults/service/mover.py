"""Process for kill tests. It moves all notes of a vault and prints the id of each moved note."""

from __future__ import annotations

import sys
from pathlib import Path

import trio

from lithos.notes.catalogue.catalogue import Catalogue
from tests.vaults.service.pairs import vaults


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


async def main(root: Path) -> None:
    async with vaults(root) as pair:
        say("begin")
        for entry in list(pair.here.server.get(Catalogue)):
            await pair.move(entry.note.id)
            say(entry.note.id)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
