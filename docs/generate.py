"""Generator of `docs/reference/` from the code: `python -m docs.generate`. With `--check`, it only compares.

The package `docs` contains no names of tools, settings, metrics, error codes or commands. The reference pages
show everything that the code defines, so they are always complete.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from docs.interface import render_errors, render_events, render_tools
from docs.operation import render_commands, render_metrics, render_settings

FOLDER: Final = Path(__file__).parent / "reference"
#: Function that generates each page, by file name.
PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "tools.md": render_tools,
    "configuration.md": render_settings,
    "commands.md": render_commands,
    "events.md": render_events,
    "errors.md": render_errors,
    "metrics.md": render_metrics,
}
_NOTICE: Final = "<!-- Written by `python -m docs.generate` from the code; do not edit. -->\n\n"
ADVICE: Final = "run `python -m docs.generate` and commit what it changes"


@cache
def render_pages() -> dict[str, str]:
    """Return the text of every reference page, by file name."""
    return {name: _NOTICE + render().strip() + "\n" for name, render in PAGES.items()}


def find_differences(folder: Path = FOLDER) -> list[str]:
    """Return the names of pages that are missing or outdated.

    Also return generated pages that no longer have a generator.
    """
    rendered = render_pages()
    texts = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    found = {name: text for name, text in texts.items() if name in rendered or text.startswith(_NOTICE)}
    return sorted(name for name in rendered.keys() | found.keys() if rendered.get(name) != found.get(name))


def main(arguments: Sequence[str]) -> int:
    """Write the pages. With `--check`, only return 1 if a page differs."""
    if "--check" in arguments:
        different = find_differences()
        if different:
            sys.stderr.write(f"docs/reference: {', '.join(different)} differ from the code; {ADVICE}\n")
        return 1 if different else 0
    FOLDER.mkdir(exist_ok=True)
    for name, text in render_pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
