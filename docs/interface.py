"""Reference pages for callers of Lithos: tools, resources, prompts, events, errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from docs.examples import Example, make_examples, render_example
from docs.tables import as_code, make_table
from lithos.app.capabilities import all_tools
from lithos.kernel.values.errors import LithosError
from lithos.server.tools.arguments import note_paths
from lithos.server.tools.bounds import PATH, Bound
from lithos.server.tools.declaring import CONNECTOR, PROFILES, Tool
from lithos.server.tools.resource_uris import PROMPTS

_TOOLS_INTRODUCTION: Final = """\
# Tools

Here you find every MCP tool: who sees it, what it does, and what it takes.

`server.tools` chooses what is listed to clients: `core`, `standard` (the default, with all of core) or `full`
(everything). A tool that is not listed can still be called by its name. A refusal is an answer:
`{"status":"error","code":…,"message":…}`, see [errors](errors.md). What is longer than "At most" says is
refused with `invalid_input`. Null, and blank text for what is optional, count as left out, except where `""`
clears a value. Arrays and objects may be given as JSON text.

Your agent id may be given as `agent` or `agent_id` to every tool, and filters nothing. Every parameter may be
passed under every profile; *rare* ones are listed to clients by `full` alone.

No answer has more than `server.max_answer_chars` characters of JSON: a cut one has `truncated` and
`next_offset`, and goes on with `offset`, which every tool with rows takes. Wherever the `id` of a note is
asked for, its `path` is taken too; for a note that a tool is not itself about it is `from_path`, `to_path`
and so on. A filter by tag takes the tag with all below it: `project`, `#project` and `project/` find
`project/alpha` too. The examples were made by running them, with ids and hashes by other names.
"""

_ERRORS_INTRODUCTION: Final = """\
# Errors

Here you find what each refusal means.

## From tools

A refusal is an ordinary answer, `{"status":"error","code":…,"message":…}` and the extras named below. The
message says what to do next. With `server.write_outcomes: status` the codes `version_conflict`,
`slug_collision`, `path_collision` and `duplicate` are also the `status`.
"""

_OTHER_ERRORS: Final = """\
An unknown tool, and an argument that is unknown, missing or of the wrong type, is a protocol error
(`isError: true`) with the same envelope, as text and structured; its code is `invalid_input`, for a tool
`unknown_tool`.

## From the HTTP port

The body is `{"error": code}`, mostly with a `message`.
"""

_STREAM_ERRORS: Final = """\
`/events` and `/events/ws` answer in plain text: 429 when there are too many clients.
"""

#: `by` is the person who decided, `to` the new path of a move; null where there is no value.
_PROPOSAL: Final = ("proposal_id", "id", "path", "title", "kind", "agent", "to", "by", "reason")
_EVENTS_INTRODUCTION: Final = """\
# Events

Here you find every event that `/events`, `/events/ws`, `lithos events` and `lithos wait` tell.

An event has `id` (its position as text), `seq` (the same as a number), `type`, `timestamp`, `agent`,
`payload` and `tags`. Positions strictly increase over all kinds; gaps mean nothing. Note events carry the
tags of the note, task and finding events those of the task, others none. What other programs do to the notes
is told with the agent `watcher`, or `scan` when it was found at the start.
"""

_RESYNC: Final = """\
`resync` is no event: it says that the position asked for is no longer known, and that what came before has to
be read from the notes and tasks themselves. Refused and failed calls tell nothing.
"""

_EVENTS_QUERY: Final = """\
## Asking for them

`GET /events` answers server-sent events, `/events/ws` is a WebSocket. Query parameters of both, blanks around
values and empty values ignored:
"""

#: Query parameters: the meaning of each, and the endpoints that read it.
QUERY: Final[Mapping[str, tuple[str, str]]] = {
    "types": (
        "Only events of one of these types: a comma list, or given several times. A type that does not exist "
        "matches nothing.",
        "both",
    ),
    "tags": (
        "Only events with one of these tags: a comma list, or given several times. Events without tags are "
        "left out. With `types` both must fit.",
        "both",
    ),
    "since": (
        "The `id` of the last event you have: first all later ones that fit, then live ones. Absent: from "
        "now on. On `/events` the header `Last-Event-ID`, which browsers send when they reconnect, wins.",
        "both",
    ),
    "subscriber": (
        "A name for a durable cursor: you go on after what you acknowledged. A new name starts now.",
        "`/events/ws`",
    ),
    "access_token": (
        "The token, for browsers, which cannot set the header `Authorization` here. It is never logged.",
        "both",
    ),
}

_EVENTS_FRAMES: Final = """\
On `/events` only what has a `data` line is a message: an event, or `resync`. Of an event the `id` line is the
position to resume from, the `event` line the type; `data` is one flat object, the keys of the payload beside
`agent`, `tags` and `timestamp`, so that an `id` in it is the note's. `resync` has no `id` line. Everything
else is a comment (a line that begins with `:`), which client libraries keep to themselves: `: keepalive`
after 15 seconds of silence, `: token ended` when the token was revoked or has expired, and `: overflow`
before the stream of a client that reads too slowly ends; it resumes after its last `id` and loses nothing. On
`/events/ws` every frame is a JSON object: first `hello`, with the newest position and your cursor, then
`resync` and events as they are described above, with `id`, `seq`, `type` and `payload`.

```text
id: 1741064767001
event: note.created
data: {"agent":"ann","id":"<id>","title":"Raft","path":"raft.md","tags":[],"timestamp":"<time>"}
```
"""

_APPROVED: Final = "Of a proposal that a person approved, it also has `approved_by`."
#: Payload of each event type, in the order of the wire, and its meaning.
EVENTS: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
    "note.created": (f"A note was written, or found in the folder. {_APPROVED}", ("id", "title", "path")),
    "note.updated": (f"A note changed, through a tool or on disk. {_APPROVED}", ("id", "title", "path")),
    "note.deleted": (f"A note is gone. {_APPROVED}", ("id", "path")),
    "note.renamed": (f"A note file moved; its id stays. {_APPROVED}", ("id", "src_path", "dest_path")),
    "note.conflict_copy": ("Another machine's version of a note was found.", ("id", "title", "path", "copy")),
    "proposal.created": ("An agent proposes a change, which waits for a person.", _PROPOSAL),
    "proposal.approved": ("A person approved a proposal: the note is changed.", _PROPOSAL),
    "proposal.rejected": ("A proposal was refused, for this reason, or its note is gone.", _PROPOSAL),
    "proposal.expired": ("Nobody looked at a proposal for `proposals.days`.", _PROPOSAL),
    "proposal.withdrawn": ("An agent took its proposal back.", _PROPOSAL),
    "task.created": ("There is a new task.", ("task_id", "title")),
    "task.updated": ("A task changed.", ("task_id",)),
    "task.claimed": ("An agent took an aspect of a task.", ("task_id", "agent", "aspect", "fence")),
    "task.released": (
        "An aspect was given back, by the agent that held it or by a person; `agent` of the payload held it.",
        ("task_id", "agent", "aspect"),
    ),
    "task.claim_expired": (
        "A claim ran out, at most 2 s ago; the agent is the one that held it.",
        ("task_id", "agent", "aspect", "fence"),
    ),
    "task.ready": (
        "A task can start: at its creation, after its last blocker, or by a timer gate (agent `timer`).",
        ("task_id", "title"),
    ),
    "task.completed": (
        "A task is done. The last three are JSON text, `null` when absent.",
        ("task_id", "agent", "outcome", "cited_nodes", "misleading_nodes", "receipt_id"),
    ),
    "task.cancelled": ("A task was given up.", ("task_id", "agent", "reason")),
    "task.failed": (
        "The last of `coordination.max_attempts` attempts failed; `outcome` is its last output.",
        ("task_id", "agent", "attempts", "outcome"),
    ),
    "task.reopened": ("A closed task is open again.", ("task_id", "agent", "prior_status", "prior_outcome")),
    "finding.posted": (
        "An agent reported something; its first 300 characters, `knowledge_id` only with a note.",
        ("finding_id", "task_id", "agent", "summary", "knowledge_id"),
    ),
    "edge.upserted": (
        "A typed edge was made or changed.",
        ("edge_id", "from_id", "to_id", "type", "namespace", "conflict_state"),
    ),
    "agent.registered": ("An agent introduced itself.", ("agent_id", "name")),
    "reindex_complete": (
        "All notes are searchable, after `lithos reindex` or a start with `index.rebuild_on_start`.",
        ("documents", "chunks"),
    ),
}

#: Refusals of the HTTP port: status, code, what to do.
HTTP_REFUSALS: Final[Sequence[tuple[int, str, str]]] = (
    (400, "invalid_after", "`/audit`: `after` is no time. Send ISO 8601."),
    (400, "invalid_input", "`/import`: it is no step of an import. Use `lithos import`."),
    (400, "invalid_scope", "`/reconcile`: send `all`, `indices`, `graph` or `provenance_projection`."),
    (401, "unauthorized", "The server wants `Authorization: Bearer` and a valid token."),
    (403, "forbidden", "The token lacks the right that the message names."),
    (403, "forbidden_host", "The name you called it by is not allowed: `server.allowed_hosts`."),
    (403, "forbidden_origin", "The web page that called is not allowed: `server.allowed_origins`."),
    (404, "not_found", "There is no such address: it has one spelling, no second slash or encoded letter."),
    (405, "method_not_allowed", "The address wants another method."),
    (408, "request_timeout", "The body stopped arriving. Send it again."),
    (409, "no_import", "`/import`: another import began, or the server was restarted. Run it again."),
    (
        413,
        "body_too_large",
        "Send less at once: the message says of what. Notes: `storage.max_content_size_bytes`; a call holds "
        "at most 40,000 JSON values, a text of any length being one.",
    ),
    (
        429,
        "too_many_wrong_tokens",
        "Correct the token; right ones pass at once. `Retry-After` says how long.",
    ),
    (500, "internal_error", "The server failed on this request; its log says why."),
    (503, "audit_log_unavailable", "The audit log cannot be read now."),
    (
        503,
        "vault_unavailable",
        "One of several vaults is not served now: the message says why. It is tried again.",
    ),
    (503, "stopping", "The server is stopping. Ask again when it is back."),
)


def render_tools() -> str:
    """Every tool with its parameters."""
    tools, examples = all_tools(), make_examples()
    parts = [
        _TOOLS_INTRODUCTION,
    ]
    for profile in (*PROFILES, CONNECTOR):
        listed = [tool for tool in tools if tool.profile == profile and not tool.is_legacy]
        parts.append(f"## {profile.capitalize()} ({len(listed)})\n")
        parts += [_describe_tool(tool, examples.get(tool.name)) for tool in listed]
    parts.append("## Legacy\n\nOnly with `server.legacy_tools`.\n")
    parts += [_describe_tool(tool, examples.get(tool.name)) for tool in tools if tool.is_legacy]
    return "\n".join([*parts, _render_resources(), _render_prompts()])


def _describe_tool(tool: Tool, example: Example | None) -> str:
    spec = tool.spec()
    hints = [
        "reads only" if spec.read_only else "changes something",
        *(["can overwrite or remove"] if spec.destructive else []),
        *(["repeating it changes nothing more"] if spec.idempotent else []),
    ]
    text = f"### {tool.name}\n\n{tool.description}\n\nHints: {'; '.join(hints)}.\n"
    required = spec.input_schema.get("required", ())
    bounds = dict.fromkeys(note_paths(tool.arguments).values(), PATH)
    bounds |= {one.name: one.metadata["bound"] for one in attrs.fields(tool.arguments)}
    common = tool.spec(is_short=True).input_schema["properties"]
    rows = [
        _parameter_row(name, schema, name in required, bounds.get(name), is_rare=name not in common)
        for name, schema in spec.input_schema["properties"].items()
    ]
    if rows:
        text += f"\n{make_table(('Parameter', 'Type', 'Default', 'At most', 'Meaning'), rows)}"
    return text if example is None else f"{text}\n{render_example(tool.name, example)}\n"


def _parameter_row(
    name: str, schema: Mapping[str, Any], is_required: bool, bound: Bound | None, *, is_rare: bool
) -> tuple[str, ...]:
    default = "required" if is_required else as_code(schema.get("default"))
    choices = ", ".join(map(as_code, schema.get("enum", ())))
    meaning = schema["description"] + (f" One of {choices}." if choices else "")
    meaning += " *Rare.*" if is_rare else ""
    return as_code(name), _name_type(schema), default, "" if bound is None else str(bound), meaning


def _name_type(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(str(kind["type"]) for kind in schema["anyOf"])
    if schema["type"] == "array":
        inner = schema.get("items", {}).get("type")
        return f"{inner}[]" if inner else "array"
    return str(schema["type"])


def _render_resources() -> str:
    rows = [
        ("`lithos://note/{id}`", "`text/markdown`", "The note file as it is stored."),
        ("`lithos://task/{id}`", "`application/json`", "A task, its claims, findings and blockers."),
        ("`lithos://tags`", "`application/json`", "Every tag and how many notes have it."),
    ]
    return f"## Resources\n\n{make_table(('URI', 'Type', 'Content'), rows)}"


def _render_prompts() -> str:
    rows = [
        (
            as_code(prompt.name),
            ", ".join(f"`{each.name}`{' (required)' if each.required else ''}" for each in prompt.arguments),
            prompt.description,
        )
        for prompt in PROMPTS
    ]
    return f"## Prompts\n\n{make_table(('Prompt', 'Arguments', 'Meaning'), rows)}"


def list_errors() -> list[type[LithosError]]:
    """One class per meaning of a wire code, by code."""
    all_tools()  # whatever a tool can refuse with is defined now
    found = [each for each in _descend(LithosError) if "code" in vars(each)]
    return sorted(found, key=lambda each: (each.code, each.__name__))


def _descend(cls: type[LithosError]) -> Iterator[type[LithosError]]:
    for inner in cls.__subclasses__():
        yield inner
        yield from _descend(inner)


def render_errors() -> str:
    """Every wire code with its meaning."""
    rows = [(as_code(each.code), " ".join((each.__doc__ or "").split())) for each in list_errors()]
    http = [(str(status), as_code(code), text) for status, code, text in HTTP_REFUSALS]
    return "\n".join([
        _ERRORS_INTRODUCTION,
        make_table(("Code", "Meaning"), rows),
        _OTHER_ERRORS,
        make_table(("Status", "Code", "What to do"), http),
        _STREAM_ERRORS,
    ])  # fmt: skip


def render_events() -> str:
    """Every event type with its payload."""
    rows = [(as_code(kind), ", ".join(map(as_code, keys)), text) for kind, (text, keys) in EVENTS.items()]
    return "\n".join([
        _EVENTS_INTRODUCTION,
        make_table(("Type", "Payload", "What happened"), rows),
        _RESYNC,
        _EVENTS_QUERY,
        make_table(
            ("Parameter", "Meaning", "Of"),
            [(as_code(name), text, of) for name, (text, of) in QUERY.items()],
        ),
        _EVENTS_FRAMES,
    ])  # fmt: skip
