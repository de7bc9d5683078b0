"""MCP resources and prompts: URIs of resources, effects of events on resources, and prompt templates.

Resources are specified in docs/spec/mcp.md §4, and prompts in §5. Clients offer the prompts to users by name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Final, Literal
from urllib.parse import quote, unquote

from attrs import frozen

from lithos.kernel.values.events import NOTE_CREATED, NOTE_DELETED, NOTE_RENAMED, NOTE_UPDATED, EventDraft

#: Maximum number of characters of one prompt argument.
LONGEST: Final = 10_000


class BadPrompt(ValueError):
    """The prompt is unknown, or one of its arguments is missing, unknown or invalid.

    The message gives the reason.
    """


@frozen
class PromptArgument:
    """One argument of a prompt. All arguments are text."""

    name: str
    description: str
    required: bool


@frozen
class Prompt:
    """Prompt in the list for clients. `write` returns its text when all arguments are given."""

    name: str
    title: str
    description: str
    arguments: tuple[PromptArgument, ...]
    write: Callable[[Mapping[str, str]], str]

    def render(self, given: Mapping[str, str]) -> str:
        """Return the text of the prompt for the given arguments. Raises `BadPrompt`."""
        known = {argument.name: argument for argument in self.arguments}
        for name in given:
            if name not in known:
                raise BadPrompt(
                    f"Unknown argument {name[:100]!r}. Prompt '{self.name}' accepts {', '.join(known)}."
                )
            if len(given[name]) > LONGEST:
                raise BadPrompt(
                    f"Argument '{name}' has more than {LONGEST:,} characters. Shorten the argument."
                )
        kept = {name: text.strip() for name, text in given.items() if text.strip()}
        for argument in self.arguments:
            if argument.required and argument.name not in kept:
                raise BadPrompt(f"Argument '{argument.name}' of prompt '{self.name}' is missing or blank.")
        return self.write(kept)


RESEARCH_FIRST: Final = """\
Find out: {topic}

Another agent may have found this out already. Work in this order.

1. Look. Call lithos_context with query={query} for the known facts about it, then lithos_cache_lookup with \
query={query}{max_age}; add source_url if one web page is the source.
2. "hit": true: read the note with lithos_read (id = document.id), answer from it and name its id. \
Stop here: do not research it again.
3. "hit": false: research the facts that are missing from the briefing; lithos_search finds more notes. \
If "stale_exists" is true, read the note stale_id with lithos_read and check what has changed since.
4. Write down what you learned with lithos_write: title, content, agent (your agent id), source_url of the \
main source, tags, confidence (0..1, how sure you are) and ttl_hours (how long it will stay true).
   - After a stale hit update that note: id = stale_id, expected_version = the version you read, \
on_conflict = merge. Do not write a second note. To change a part of it call lithos_note_edit instead \
(op, section, text).
   - "code":"duplicate" means that another note has this source_url: read the note duplicate_of.id and \
update it instead.
5. Answer, and name the id of the note.
"""

HANDOFF: Final = """\
Hand over the task {task_id}. You are the agent {agent}; pass task_id={task_id} and agent={agent} in every \
call below that takes them.

1. Read. lithos_task_status gives the task and its claims, lithos_finding_list its findings. Do not repeat \
existing findings.
2. Say what is done. Post each result with lithos_finding_post (summary). Put knowledge that is useful \
beyond this task into a note first: lithos_write with source_task={task_id}; pass the id of that note as \
knowledge_id of the finding.
3. Say what is open. Post a finding for each open point, with the attempts so far, the failures and their \
reasons, and the tasks or gates that it waits for.
4. Name the first step. If anything is open, post a last finding that begins with "Next step:" and names \
the one thing that the next agent should do first, so that it can start without asking: which note, file or \
command, and the expected result.
5. Let go. If nothing is open, call lithos_task_complete with a one-sentence outcome and cited_nodes = ids \
of the notes that helped. Otherwise call lithos_task_release for every aspect that you hold, so that the \
next agent need not wait until your claim expires.
"""


def _write_research_first(given: Mapping[str, str]) -> str:
    max_age = given.get("max_age_hours")
    return RESEARCH_FIRST.format(
        topic=given["topic"],
        query=_quote(given["topic"]),
        max_age="" if max_age is None else f" and max_age_hours={_hours(max_age)}",
    )


def _write_handoff(given: Mapping[str, str]) -> str:
    return HANDOFF.format(task_id=_quote(given["task_id"]), agent=_quote(given["agent"]))


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _hours(text: str) -> str:
    try:
        hours = float(text)
    except ValueError:
        hours = math.nan
    if not (math.isfinite(hours) and hours > 0):
        raise BadPrompt(f"Argument 'max_age_hours' must be a number above 0, not {text[:100]!r}.")
    return f"{hours:g}"


PROMPTS: Final = (
    Prompt(
        "research-first",
        "Check for an answer, then research",
        "Check Lithos for a fresh answer before researching, and store the result as a note.",
        (
            PromptArgument("topic", "Topic to research.", required=True),
            PromptArgument(
                "max_age_hours", "Maximum age of an answer in hours; older answers are stale.", required=False
            ),
        ),
        _write_research_first,
    ),
    Prompt(
        "handoff",
        "Hand over a task",
        "Leave a task so that the next agent can continue without questions.",
        (
            PromptArgument("task_id", "The task to hand over.", required=True),
            PromptArgument("agent", "Your agent id, which holds the claims.", required=True),
        ),
        _write_handoff,
    ),
)


def render_prompt(name: str, given: Mapping[str, str]) -> tuple[Prompt, str]:
    """Return a prompt and its text for the given arguments. Raises `BadPrompt`."""
    for prompt in PROMPTS:
        if prompt.name == name:
            return prompt, prompt.render(given)
    raise BadPrompt(
        f"Unknown prompt {name[:100]!r}. Known prompts: {', '.join(prompt.name for prompt in PROMPTS)}."
    )


TAGS_URI: Final = "lithos://tags"
NOTE_PREFIX: Final = "lithos://note/"
TASK_PREFIX: Final = "lithos://task/"

_CHANGES_NOTE: Final = frozenset({NOTE_UPDATED, NOTE_RENAMED, NOTE_DELETED})
_CHANGES_TAGS: Final = frozenset({NOTE_CREATED, NOTE_UPDATED, NOTE_DELETED})
_CHANGES_LIST: Final = frozenset(
    {
        NOTE_CREATED,
        NOTE_DELETED,
        "task.created",
        "task.completed",
        "task.cancelled",
        "task.failed",
        "task.reopened",
    }
)


@frozen
class ResourceAddress:
    """Parsed resource URI. `id` is empty for the resource that contains all tags."""

    kind: Literal["note", "task", "tags"]
    id: str = ""

    @property
    def uri(self) -> str:
        """Return the canonical URI. The resource list contains it in this form."""
        if self.kind == "tags":
            return TAGS_URI
        return (NOTE_PREFIX if self.kind == "note" else TASK_PREFIX) + quote(self.id, safe="")


def read_address(uri: str) -> ResourceAddress | None:
    """Parse a resource URI. The id may be percent-encoded in any way. Return None for an unknown URI."""
    if uri == TAGS_URI:
        return ResourceAddress("tags")
    try:
        uri.encode()  # a text that UTF-8 cannot encode is not an id
        if uri.startswith(NOTE_PREFIX) and (note_id := unquote(uri[len(NOTE_PREFIX) :], errors="strict")):
            return ResourceAddress("note", note_id)
        if uri.startswith(TASK_PREFIX) and (task_id := unquote(uri[len(TASK_PREFIX) :], errors="strict")):
            return ResourceAddress("task", task_id)
    except UnicodeError:
        return None
    return None


def changed_by(event: EventDraft) -> list[ResourceAddress]:
    """Return the resources whose content an event changes."""
    changed: list[ResourceAddress] = []
    if event.type in _CHANGES_NOTE and (note_id := event.payload.get("id")):
        changed.append(ResourceAddress("note", note_id))
    if event.type in _CHANGES_TAGS:
        changed.append(ResourceAddress("tags"))
    is_of_task = event.type.startswith("task.") or event.type == "finding.posted"
    if is_of_task and (task_id := event.payload.get("task_id")):
        changed.append(ResourceAddress("task", task_id))
    return changed


def changes_list(event: EventDraft) -> bool:
    """Return whether an event changes the list of resources."""
    return event.type in _CHANGES_LIST
