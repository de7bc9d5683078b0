"""The snippet that each of thirty questions gets on a vault, to be read by a person.

`python -m bench.snippets FOLDER [--mode hybrid]` copies the Markdown files of FOLDER, serves them in this
process and prints question, title, match and snippet of the first row. The questions are those of somebody
who works with the notes of the shared vault.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import trio

from lithos.app import running_server
from lithos.config.catalogue import Config
from lithos.config.sections import SearchConfig, ServerConfig, StorageConfig

QUESTIONS: Final = (
    "how do I run a solana node locally?",
    "run an ethereum node",
    "how to install nix on an m1 mac",
    "what is conviction voting",
    "what does the agpl license require",
    "difference between bsd license and agpl",
    "how are erasure codes used for storage",
    "what is the cynefin framework",
    "complicated versus complex systems",
    "how does connectivism see learning",
    "why do we use discourse",
    "machine learning against phishing",
    "what is aleph zero",
    "interlock smart contract stack",
    "how is risk modeled",
    "security standards for engineers",
    "how do new engineers get started",
    "how to create an mp4 video for a demo",
    "who do I ask about the frontend QA",
    "git pull to a bare repository",
    "set up hardhat",
    "which browser features protect users",
    "adversarial advertising",
    "emacs configuration",
    "what are the commonly used terms",
    "code of conduct harassment reporting",
    "how can I contribute to this wiki",
    "solana program template",
    "prismic content",
    "where do we meet and when",
)


async def ask_all(folder: Path, mode: str) -> list[tuple[str, dict[str, Any] | None]]:
    """Each question with its first row, or None."""
    with tempfile.TemporaryDirectory() as data:
        shutil.copytree(folder, Path(data) / "knowledge", ignore=_no_notes)
        config = Config(
            storage=StorageConfig(data_dir=Path(data)),
            server=ServerConfig(watch_files=False),
            search=SearchConfig(tier="static"),
        )
        async with running_server(config) as server:
            await server.searchable()
            found: list[tuple[str, dict[str, Any] | None]] = []
            for question in QUESTIONS:
                asked = {"query": question, "mode": mode, "limit": 1}
                rows = ((await server.tools.call("lithos_search", asked)) or {})["results"]
                found.append((question, rows[0] if rows else None))
            return found


def _no_notes(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not (Path(folder, name).is_dir() or name.endswith(".md"))]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.snippets", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mode", default="hybrid")
    options = parser.parse_args()
    for question, row in trio.run(ask_all, options.folder, options.mode):
        title = "-" if row is None else f"{row['title']} ({row.get('match', '?')}): {row['snippet']!r}"
        sys.stdout.write(f"{question}\n    {title}\n")


if __name__ == "__main__":
    main()
