"""The skill (`SKILL.md`): made of the template beside this file, with the tools' names of the registry.

Agent Skills: `name` of at most 64 lower-case letters, digits and hyphens, equal to its folder's name;
`description` of at most 1,024 characters; the text is read only when the description fits the work.
"""

from __future__ import annotations

from pathlib import Path
from string import Template
from typing import Final

from lithos import __version__
from lithos.cli.options import Invocation

SKILL: Final = "lithos"
_TEMPLATE: Final = Path(__file__).with_name("skill.md")


def make_skill() -> str:
    """The text of `SKILL.md`. Raises `KeyError` for a tool that the registry does not have."""
    from lithos.tools.contract.declaring import all_tools

    names = {each.name.removeprefix("lithos_"): each.name for each in all_tools()}
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(names, version=__version__)


def run_skill(invocation: Invocation) -> int:
    """Print the skill."""
    from lithos.cli.output import print_json

    text = make_skill()
    if invocation.as_json:
        print_json({"name": SKILL, "text": text})
    else:
        print(text, end="")
    return 0
