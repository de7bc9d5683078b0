"""Own text: detection of notes that have text of their own."""

from __future__ import annotations

import pytest

from lithos.text.own_text import has_own_text


@pytest.mark.parametrize(
    "content",
    [
        "",
        "\n\n---\n",
        "# Maps of Content\n",
        "# Maps\n\n- [[Git]]\n- [[Tasks|All tasks]]\n- ![[image.png]]\n",
        "## Open\n\n```dataview\nTABLE file.ctime FROM #project\n```\n",
        "~~~tasks\nnot done\n~~~\n",
        "#area/home #todo\n",
        "[the site](https://example.org/a) https://example.org/b <br>\n",
        "%% nothing yet %%\n\n| | |\n|---|---|\n",
        "> [!info]\n> [[Git]]\n",
        "```query\ntag:#a",
    ],
)
def test_titles_links_tags_and_queries_are_not_own_text(content: str) -> None:
    assert not has_own_text(content)


@pytest.mark.parametrize(
    "content",
    [
        "# Git\n\nBacks up a vault.\n",
        "- [[Git]]: backs up\n",
        "```python\nprint(1)\n```\n",
        "```dataview\nLIST\n```\n\nAll projects.\n",
        "42",
        "日本",
        "[" * 5_000,
        "#1 of the list",
    ],
)
def test_word_outside_titles_links_tags_and_queries_is_own_text(content: str) -> None:
    assert has_own_text(content)
