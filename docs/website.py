"""MkDocs hooks that prepare the pages for the website. `mkdocs.yml` lists them under `hooks`.

The pages are written for the code hosting site. On the website, links to files outside `docs/` lead to the
repository, and marked sections become tabs. The Markdown sources are also published, because agents that read
`llms.txt` fetch them.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any, Final

_LINK: Final = re.compile(r"(?<=\]\()(?!\w+:|#|/)([^)#\s]+)(#[^)\s]*)?(?=\))")
#: Fenced code block. It is not changed.
_FENCE: Final = re.compile(r"^( *)(```|~~~).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
_TABS: Final = re.compile(r"^<!-- tabs: begin -->\n(.*?)^<!-- tabs: end -->$", re.MULTILINE | re.DOTALL)
_HEADING: Final = re.compile(r"^### (.+)\n", re.MULTILINE)
_INDENT: Final = "    "
_START: Final = "#quick-start"


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Return the text of a page in the form for the website."""
    return make_tabs(redirect_links(markdown, page.file.src_uri, config.extra["repository"]))


def on_post_build(*, config: Any) -> None:
    """Copy the Markdown sources of the pages to the website. Agents read these files."""
    source = Path(config.docs_dir)
    for page in source.rglob("*.md"):
        shutil.copyfile(page, _made(Path(config.site_dir) / page.relative_to(source)))


def redirect_links(markdown: str, page: str, repository: str) -> str:
    """Make links to files outside `docs/` lead to the repository. `page` is a path below `docs/`."""

    def redirect(match: re.Match[str]) -> str:
        target, anchor = match[1], match[2] or ""
        path = normpath(join("docs", dirname(page), target))
        if path == "README.md" and anchor in ("", _START):
            return "../" * page.count("/") + "index.md" + anchor
        if path.startswith("docs/"):
            return match[0]
        return f"{repository}/tree/main/{path}{anchor}"

    parts, done = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [_LINK.sub(redirect, markdown[done : fence.start()]), fence[0]]
        done = fence.end()
    return "".join([*parts, _LINK.sub(redirect, markdown[done:])])


def make_tabs(markdown: str) -> str:
    """Turn sections into tabs. Each section has a third-level heading, and two marks enclose all of them."""

    def tab(match: re.Match[str]) -> str:
        _, *parts = _HEADING.split(match[1])
        return "\n".join(
            f'=== "{name}"\n\n{_indented(text)}' for name, text in zip(parts[::2], parts[1::2], strict=True)
        )

    return _TABS.sub(tab, markdown)


def _indented(text: str) -> str:
    return (
        "".join(f"{_INDENT}{line}" if line.strip() else line for line in text.strip().splitlines(True)) + "\n"
    )


def _made(path: Path) -> Path:
    """Create the folder of a path and return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
