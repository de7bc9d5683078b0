"""The block for Lithos in a file of instructions for agents, such as `AGENTS.md` or `CLAUDE.md`.

Two comments enclose the block. Lithos changes only the lines between them, so the rest of the file keeps
every byte.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal

from lithos.clients.connect.files import CannotUse, ChangedMeanwhile, read_config, replace_config
from lithos.server.command.output import tell
from lithos.server.command.session import CommandFailed, CommandSession, refusing
from lithos.server.mcp.trigger import TRIGGER
from lithos.text.markdown import code_fences

BEGIN: Final = "<!-- lithos:begin -->"
END: Final = "<!-- lithos:end -->"
#: Maximum number of lines of the block, with both comments.
MOST_LINES: Final = 12
_MARKS: Final = re.compile(rf"^[ \t]*(?:(?P<begin>{BEGIN})|{END})[ \t]*(?=\r?$)", re.MULTILINE)
#: Number of attempts if another program writes the file meanwhile.
_ATTEMPTS: Final = 5

Change = Literal["added", "renewed", "removed", "unchanged"]


class UnclearBlock(Exception):
    """Raised if the comments that enclose the block do not form one pair. The message names the lines."""


def block(agent: str | None) -> str:
    """Return the block with LF line endings, and without one after its last line."""
    name = "the same agent id" if agent is None else f'the agent id "{agent}"'
    return f"""{BEGIN}
## Lithos: notes and tasks that agents share

{TRIGGER}.

* Before you research the web, call lithos_cache_lookup. To look further, call lithos_search and lithos_read.
* Store what other agents will need with lithos_write. If a note on the topic exists, update that note.
* Get shared work with lithos_task_next, post results with lithos_finding_post, and call lithos_task_complete.
* Pass {name} in every call.
{END}"""


def renewed(text: str, new: str) -> str:
    """Return the text with the block replaced by `new`, or with `new` at its end. Raises `UnclearBlock`."""
    ending = "\r\n" if "\r\n" in text else "\n"
    new = new.replace("\n", ending)
    span = _span(text)
    if span is not None:
        return text[: span[0]] + new + text[span[1] :]
    if not text:
        return new + ending
    # A text without a final line break gets none, so that removing the block restores each byte.
    made = text + new + ending if text.endswith("\n") else text + ending + new
    if _span(made) is None:
        raise UnclearBlock("its last code block is not closed, so the block would be part of the code")
    return made


def removed(text: str) -> str:
    """Return the text without the block. Raises `UnclearBlock`."""
    span = _span(text)
    if span is None:
        return text
    before, after = text[: span[0]], text[span[1] :]
    ending = "\r\n" if "\r\n" in text[span[0] : span[1]] else "\n"
    return before + after.removeprefix(ending) if after else before.removesuffix(ending)


def _span(text: str) -> tuple[int, int] | None:
    """Return the bounds of the block, or None without one. Comments in fenced code do not count."""
    fences = list(code_fences(text))
    marks = [
        mark
        for mark in _MARKS.finditer(text)
        if not any(start <= mark.start() < end for start, end in fences)
    ]
    if not marks:
        return None
    if [bool(mark["begin"]) for mark in marks] != [True, False]:
        lines = ", ".join(str(text.count("\n", 0, mark.start()) + 1) for mark in marks[:10])
        raise UnclearBlock(f"the comments {BEGIN} and {END} do not form one pair (lines {lines})")
    return marks[0].start(), marks[1].end()


def change_instructions(path: Path, new: str | None) -> Change:
    """Write the block `new` to the file, or remove the block if `new` is None.

    Raises `CannotUse` and `UnclearBlock`, and changes nothing then.
    """
    for _ in range(_ATTEMPTS):
        file = read_config(path)
        # `text` has no byte-order mark, so it is kept separately.
        mark = b"\xef\xbb\xbf" if (file.data or b"").startswith(b"\xef\xbb\xbf") else b""
        text = removed(file.text) if new is None else renewed(file.text, new)
        data = mark + text.encode()
        if data == (file.data or b""):
            return "unchanged"
        had_block = _span(file.text) is not None
        try:
            replace_config(file, data or None)
        except ChangedMeanwhile:
            continue
        return "removed" if new is None else "renewed" if had_block else "added"
    raise CannotUse(f"{path} is being written by another program, so it is unchanged. Try again later.")


def run_instructions(session: CommandSession) -> int:
    """Run `lithos connect --instructions FILE`. Raises `CommandFailed`."""
    typed = session.typed
    others = ("client", "write", "list", "plugin", "scope", "file", "name", "transport", "hooks")
    if unused := [each for each in others if typed.get(each) is not None and typed.get(each) is not False]:
        raise CommandFailed(f"Use --instructions without {', '.join(unused)}.", 2)
    # A line break in the name could end the block early.
    if not typed.get("agent", "").isprintable():
        raise CommandFailed("The agent id for a block must be one line without control characters.", 2)
    path = Path(typed["instructions"]).expanduser().absolute()
    new = None if typed.get("remove") else block(typed.get("agent"))
    with refusing(CannotUse):
        try:
            change = change_instructions(path, new)
        except UnclearBlock as problem:
            raise CommandFailed(
                f"{path} is unchanged: {problem}. Keep one pair, each comment on its own line, and try again."
            ) from problem
    shown = {
        "added": f"The block for Lithos was added to {path}. Remove it with --remove.",
        "renewed": f"The block for Lithos in {path} was renewed. The rest of the file is unchanged.",
        "removed": f"The block for Lithos was removed from {path}.",
        "unchanged": f"{path} is unchanged.",
    }[change]
    tell(session, {"path": str(path), "action": change}, [shown])
    return 0
