"""Check the message of a commit: `.ci/commit_message.py FILE`, as git calls a `commit-msg` hook.

CONTRIBUTING.md has the rules; `.pre-commit-config.yaml` installs this as a hook.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

#: Characters of a subject, and of a line of the body.
WIDTH: Final = 72
_UNCHECKED: Final = re.compile(r"(Merge|Revert|fixup!|squash!|amend!) ")
#: Endings of verbs that are not imperative, as the first word has them: Fixes, Fixed, Fixing.
_NOT_IMPERATIVE: Final = re.compile(r"(?!\w+ss$)[A-Z][a-z]+(?:s|ed|ing)|[a-z].*")
_IMPERATIVE: Final = frozenset({"Bring", "Embed", "Feed", "Focus", "Need", "Seed", "Shed", "Speed", "String"})
_NOT_VERBS: Final = frozenset({"A", "An", "The", "It", "This", "That", "What", "Who", "When", "Where", "No"})


def main(arguments: list[str]) -> int:
    """Print what is wrong with the message in a file; 1 when something is."""
    (name,) = arguments
    problems = find_problems(Path(name).read_text(encoding="utf-8"))
    print(*(f"commit message: {problem}" for problem in problems), sep="\n", file=sys.stderr)
    return 1 if problems else 0


def find_problems(message: str) -> list[str]:
    """What is wrong with a message, with what to write instead."""
    text = message.partition("# ------------------------ >8")[0]
    lines = [line.rstrip() for line in text.splitlines() if not line.startswith("#")]
    while lines and not lines[0]:
        del lines[0]
    if not lines or _UNCHECKED.match(lines[0]):
        return []
    subject, *rest = lines
    return [*_problems_of_subject(subject), *_problems_of_body(rest)]


def _problems_of_subject(subject: str) -> list[str]:
    first = subject.partition(" ")[0]
    checks = {
        f"the subject has {len(subject)} characters; use at most {WIDTH}": len(subject) > WIDTH,
        "the subject ends with a full stop; remove it": subject.endswith("."),
        "the subject has a semicolon; make two commits, or move the rest to the body": ";" in subject,
        f"the subject begins with {first!r}; begin with an imperative such as 'Fix' or 'Add'": (
            first in _NOT_VERBS or (first not in _IMPERATIVE and bool(_NOT_IMPERATIVE.fullmatch(first)))
        ),
    }
    return [problem for problem, is_there in checks.items() if is_there]


def _problems_of_body(rest: list[str]) -> list[str]:
    if not any(rest):
        return ["there is no body; say why the change is made"]
    checks = {
        "the second line is not empty": bool(rest[0]),
        # A line without a blank, such as an address, cannot be wrapped.
        f"the body has lines of more than {WIDTH} characters; wrap it": any(
            len(line) > WIDTH and " " in line.strip() for line in rest
        ),
    }
    return [problem for problem, is_there in checks.items() if is_there]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
