"""The hook at the prompt, which gives the model passages that match the prompt strongly, or nothing.

See docs/spec/integration.md §2. The server judges the match (`lithos_search` with `prompt`). This module
removes code and logs from the prompt, and asks nothing for a prompt without a question. Passages are never
given twice in a session: their keys are stored like the cursor of a briefing (`files_session_cursors`).
"""

from __future__ import annotations

import os
import re
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lithos.clients.hooks.owner import HookOwner
from lithos.clients.hooks.payload import Payload, agent_of
from lithos.server.command.hook_failsafe import FAILURES, NoHookOutput, printable

TOOL: Final = "lithos_search"
#: Maximum number of passages, and of characters of the whole text. The server counts 400 tokens, and every
#: token has at least one character, so a longer text comes from another server.
MOST_PASSAGES: Final = 2
LONGEST_TEXT: Final = 4_000
#: Maximum number of characters of the prompt that are read at its beginning and at its end, and that are
#: sent of each of both parts. In long prompts the question is nearly always there.
_READ, _SENT = 20_000, 2_000
#: Minimum number of words of a question.
LEAST_WORDS: Final = 3
#: Maximum number of passages in a session. The agent can search if it needs more.
MOST_OF_SESSION: Final = 100
_KEY: Final = re.compile(r"[A-Za-z0-9_-]{8}")
#: Stands for the data directory: the keys of passages differ between vaults.
_ANY_VAULT: Final = Path("/")
_HEAD: Final = "Notes in Lithos that match this prompt (read more with lithos_read):"
#: A command of the client. A file path has a further slash.
_COMMAND: Final = re.compile(r"[/!][\w:-]*(\s|\Z)")
_FENCE: Final = re.compile(r"\s{0,3}(```|~~~)")
_WORD: Final = re.compile(r"\w+")
#: A word as people write it, with punctuation around it.
_PLAIN: Final = re.compile(
    r"[\"'(\[*_`“‘«¿¡]*[^\W\d_]+(?:['’-][^\W\d_]+)*[\"')\]*_`”’».,;:!?…。！？、，؟،؛।॥]*\Z"
)
#: Beginnings of lines that programs print, and of lines of code.
_MACHINE: Final = re.compile(
    r"\s*(?:Traceback \(most recent|File \"|at [\w.$<]+\(|\d{4}-\d\d-\d\d[T ]\d\d:|\[?\d\d:\d\d:\d\d"
    r"|[{}<$+|@]|>>> |\"\"\"|\.\.\. |diff --git|index [0-9a-f]{7}"
    r"|(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|TRACE)\b[:\]\s]"
    r"|(?:if|elif|for|while|with|else|try|except)(?: \S+){0,4}:\s*\Z"
    r"|(?:async |export |public |private |static )?(?:def|class|import|return|function|const|let|var|fn|func"
    r"|raise|elif|except) \S.*[(:{;=]|#include|from \S+ import )"
)
#: Scripts in which words are not separated. Two characters count as a word.
_UNSEPARATED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
#: Answers to the agent. A prompt that has only such words asks nothing.
_REPLIES_TEXT: Final = """
a again ahead all and as before carry continue do done fine for further go good great hello hey hi i is it
just keep looks me more next nice no not now ok okay on one perfect please proceed resume right run same so
start still stop sure thank thanks that the them then there these this those to too try up wait well yeah yep
yes you
"""
_REPLIES: Final = frozenset(_REPLIES_TEXT.split())


def run(payload: Payload, owner: HookOwner, typed: Mapping[str, Any]) -> str:
    """Return the text for the model, or "" to stay silent, as after every failure."""
    from lithos.clients.files_session_cursors import SessionBusy

    try:
        question = question_of(payload.prompt or "")
        return _tell(payload, owner, typed, question) if question else ""
    except (SessionBusy, *FAILURES):
        return ""


def _tell(payload: Payload, owner: HookOwner, typed: Mapping[str, Any], question: str) -> str:
    from lithos.clients.files_session_cursors import sessions_folder, told_session

    agent = agent_of(typed, os.environ, payload.sender)
    # Without a session, all prompts of an agent on one day count as one session.
    session = typed.get("session") or payload.session or f"{agent} {time.strftime('%Y-%m-%d', time.gmtime())}"
    wait = max(0.0, owner.until - time.monotonic())
    with told_session(sessions_folder(os.environ), _ANY_VAULT, session, wait) as told:
        seen = [key for key in (told.cursor or "").split(" ") if _KEY.fullmatch(key)]
        if len(seen) + MOST_PASSAGES > MOST_OF_SESSION:
            return ""
        rows = _ask(owner, question, agent, seen)
        text = text_of(rows)
        if text:
            # The keys are stored before the text is printed: a lost passage is better than a repeated one.
            told.store(" ".join([*seen, *(row["passage"] for row in rows)]))
        return text


def _ask(owner: HookOwner, question: str, agent: str, seen: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows with a strong match that the session has not seen. Raises `NoHookOutput`."""
    answer = owner.call(TOOL, {"query": question, "prompt": True, "seen": seen, "agent_id": agent})
    found = [row for row in answer["results"] if row["match"] == "strong" and row["passage"] not in seen]
    if not all(_KEY.fullmatch(row["passage"]) for row in found):
        raise NoHookOutput("the answer has an unexpected shape")
    return found[:MOST_PASSAGES]


def text_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the passages with the titles and paths of their notes.

    Raises `NoHookOutput` if the text is too long.
    """
    if not rows:
        return ""
    lines = [_HEAD]
    for row in rows:
        title, path = (" ".join(str(row[key]).split()) for key in ("title", "path"))
        lines += ["", f"{title} ({path}):", *(f"> {line}" for line in str(row["snippet"]).split("\n"))]
    text = printable("\n".join(lines))
    if len(text) > LONGEST_TEXT:
        raise NoHookOutput("the answer is larger than requested")
    return text


def question_of(prompt: str) -> str:
    """Return the prose of a prompt for the server, or "" if the prompt asks nothing."""
    if _COMMAND.match(prompt.lstrip()):
        return ""
    if len(prompt) > 2 * _READ:
        prompt = f"{prompt[:_READ]}\n\n{prompt[-_READ:]}"
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(_prose(prompt))).strip()
    words = {word.casefold() for word in _WORD.findall(_bare(text))}
    count = len(words) + len(_UNSEPARATED.findall(text)) // 2
    if count < LEAST_WORDS or words <= _REPLIES:
        return ""
    return text if len(text) <= 2 * _SENT else f"{text[:_SENT]}\n\n{text[-_SENT:]}"


def _prose(prompt: str) -> Iterator[str]:
    """Yield the lines that a person wrote, and an empty line for each other line."""
    fence = ""
    for line in prompt.split("\n"):
        mark = _FENCE.match(line)
        if mark is not None and fence in ("", mark[1]):
            fence = "" if fence else mark[1]
            yield ""
        else:
            yield line if not fence and _is_prose(line) else ""


def _bare(text: str) -> str:
    """Return a text without combining marks. `re` counts no mark as part of a word, as in Hindi."""
    if text.isascii():
        return text
    return "".join([each for each in text if not unicodedata.category(each).startswith("M")])


def _is_prose(line: str) -> bool:
    if _MACHINE.match(line) is not None:
        return False
    parts = _bare(line).split()
    plain = sum(_PLAIN.match(part) is not None for part in parts)
    return 5 * plain >= 3 * len(parts) or _UNSEPARATED.search(line) is not None
