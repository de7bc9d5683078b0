"""Reference pages for programs that call Lithos: tools, resources, prompts, events and errors."""

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

Every MCP tool, with its purpose, its parameters and an example. The examples come from real calls, with ids
and hashes replaced by short names.

* **Profiles.** `server.tools` chooses which tools clients see: `core`, `standard` (the default, which
  includes core) or `full` (all tools). A tool that is not listed can still be called by its name. Every
  parameter may be passed under every profile; only `full` lists the *rare* ones.
* **Refusals.** A refused call returns `{"status":"error","code":…,"message":…}`, see [errors](errors.md). A
  value above its limit (column "At most") is refused with `invalid_input`.
* **Your agent id.** Every tool accepts it as `agent` or `agent_id`. It is never a filter.
* **Optional values.** Null and blank text count as left out, except where `""` clears a value. Arrays and
  objects may be JSON text.
* **Notes.** Wherever a tool takes the `id` of a note, it also takes its `path`. For other notes than the
  one that the tool is about, the parameters are `from_path`, `to_path` and so on.
* **Tags.** A filter by tag also matches all tags below it: `project`, `#project` and `project/` also find
  `project/alpha`.
* **Long answers.** No answer has more than `server.max_answer_chars` characters of JSON. A truncated answer
  has `truncated` and `next_offset`; continue with `offset`, which every tool with rows takes.
"""

_ERRORS_INTRODUCTION: Final = """\
# Errors

What each error code means. The message of an error says what to do next.

## From tools

A refusal is an ordinary answer, `{"status":"error","code":…,"message":…}` with the extra keys named below.
With `server.write_outcomes: status` the codes `version_conflict`, `slug_collision`, `path_collision` and
`duplicate` are also the `status`.
"""

_OTHER_ERRORS: Final = """\
An argument that is unknown, missing or of the wrong type is a protocol error (`isError: true`) with the
same keys, as text and structured. Its code is `invalid_input`. An unknown tool is a protocol error with the
code `unknown_tool`.

## From the HTTP port

The body is `{"error": code}`, usually with a `message`.
"""

_STREAM_ERRORS: Final = """\
`/events` and `/events/ws` answer in plain text with 429 if there are too many clients.
"""

#: `by` is the person who decided. `to` is the new path of a moved note, and null for other changes.
_PROPOSAL: Final = ("proposal_id", "id", "path", "title", "kind", "agent", "to", "by", "reason")
_EVENTS_INTRODUCTION: Final = """\
# Events

Every event that `/events`, `/events/ws`, `lithos events` and `lithos wait` return.

An event has `id` (its position as text), `seq` (the same as a number), `type`, `timestamp`, `agent`,
`payload` and `tags`. Positions strictly increase over all types; gaps have no meaning. Note events carry
the tags of the note, task and finding events the tags of the task; other events have no tags. Changes by
other programs have the agent `watcher`, or `scan` if they were found at the start of the server.
"""

_RESYNC: Final = """\
`resync` is not an event. It means that the journal no longer has the requested position, so the client must
read the notes and tasks themselves. Refused and failed calls emit no events.
"""

_EVENTS_QUERY: Final = """\
## Subscribe to events

`GET /events` returns server-sent events; `/events/ws` is a WebSocket. Blanks around values and empty values
are ignored. Query parameters:
"""

#: Query parameters, with their meaning and the endpoints that accept them.
QUERY: Final[Mapping[str, tuple[str, str]]] = {
    "types": (
        "Only events of one of these types: a comma list, or several parameters. A type that does not exist "
        "matches no event.",
        "both",
    ),
    "tags": (
        "Only events with one of these tags: a comma list, or several parameters. Events without tags are "
        "left out. With `types`, both must match.",
        "both",
    ),
    "since": (
        "The `id` of the last event that you have: returns all later matching events, then live ones. "
        "Without it, only live events. On `/events` the header `Last-Event-ID`, which browsers send when "
        "they reconnect, has precedence.",
        "both",
    ),
    "subscriber": (
        "A name for a durable cursor: you continue after the last event that you acknowledged. A new name "
        "starts with live events.",
        "`/events/ws`",
    ),
    "access_token": (
        "The token, for browsers, which cannot set the header `Authorization` for streams. It is never "
        "logged.",
        "both",
    ),
}

_EVENTS_FRAMES: Final = """\
On `/events` only frames with a `data` line are messages: events and `resync`. The `id` line of an event is
the position to resume from, and the `event` line is its type. `data` is one flat object: the keys of the
payload, and `agent`, `tags` and `timestamp`; an `id` in it is the id of the note. `resync` has no `id`
line.

All other lines are comments (they begin with `:`), which client libraries ignore: `: keepalive` after 15
seconds without events, `: token ended` when the token was revoked or has expired, and `: overflow` before
the stream of a client that reads too slowly ends. That client resumes after its last `id` and loses no
event.

On `/events/ws` every frame is a JSON object: first `hello`, with the newest position and your cursor, then
`resync` and events as described above, with `id`, `seq`, `type` and `payload`.

```text
id: 1741064767001
event: note.created
data: {"agent":"ann","id":"<id>","title":"Raft","path":"raft.md","tags":[],"timestamp":"<time>"}
```
"""

_APPROVED: Final = "If a person approved the change, the payload also has `approved_by`."
#: Event types, each with its meaning and the keys of its payload. The keys are in the order of the wire
#: format.
EVENTS: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
    "note.created": (f"A note was written, or found in the folder. {_APPROVED}", ("id", "title", "path")),
    "note.updated": (f"A note changed, through a tool or on disk. {_APPROVED}", ("id", "title", "path")),
    "note.deleted": (f"A note was deleted. {_APPROVED}", ("id", "path")),
    "note.renamed": (f"A note file moved; its id stays. {_APPROVED}", ("id", "src_path", "dest_path")),
    "note.conflict_copy": ("Another machine's version of a note was found.", ("id", "title", "path", "copy")),
    "note.trimmed": (
        "Lines of an adopted index moved to a topic file (`memory.trim`).",
        ("id", "title", "path", "topic_id", "topic_path", "lines", "version"),
    ),
    "proposal.created": ("An agent proposes a change, which waits for a person.", _PROPOSAL),
    "proposal.approved": ("A person approved a proposal: the note is changed.", _PROPOSAL),
    "proposal.rejected": (
        "A person rejected a proposal for this reason, or its note was deleted.",
        _PROPOSAL,
    ),
    "proposal.expired": ("No person decided on a proposal for `proposals.days`.", _PROPOSAL),
    "proposal.withdrawn": ("An agent withdrew its proposal.", _PROPOSAL),
    "task.created": ("A task was created.", ("task_id", "title")),
    "task.updated": ("A task changed.", ("task_id",)),
    "task.claimed": ("An agent claimed an aspect of a task.", ("task_id", "agent", "aspect", "fence")),
    "task.released": (
        "A claim was released, by its agent or by a person; `agent` of the payload held the claim.",
        ("task_id", "agent", "aspect"),
    ),
    "task.claim_expired": (
        "A claim expired, at most 2 s ago; the agent is the one that held it.",
        ("task_id", "agent", "aspect", "fence"),
    ),
    "task.ready": (
        "A task can start: at its creation, after its last blocker, or by a timer gate (agent `timer`).",
        ("task_id", "title"),
    ),
    "task.completed": (
        "A task was completed. The last three keys are JSON text, `null` when absent.",
        ("task_id", "agent", "outcome", "cited_nodes", "misleading_nodes", "receipt_id"),
    ),
    "task.cancelled": ("A task was cancelled.", ("task_id", "agent", "reason")),
    "task.failed": (
        "The last of `coordination.max_attempts` attempts failed; `outcome` is its last output.",
        ("task_id", "agent", "attempts", "outcome"),
    ),
    "task.reopened": (
        "A closed task was opened again.",
        ("task_id", "agent", "prior_status", "prior_outcome"),
    ),
    "finding.posted": (
        "An agent reported a finding: its first 300 characters, and `knowledge_id` only if it names a note.",
        ("finding_id", "task_id", "agent", "summary", "knowledge_id"),
    ),
    "edge.upserted": (
        "A typed edge was made or changed.",
        ("edge_id", "from_id", "to_id", "type", "namespace", "conflict_state"),
    ),
    "agent.registered": ("An agent registered.", ("agent_id", "name")),
    "agent.archived": ("An agent was retired.", ("agent_id", "name", "archived_at")),
    "reindex_complete": (
        "All notes are searchable, after `lithos reindex` or a start with `index.rebuild_on_start`.",
        ("documents", "chunks"),
    ),
}

#: Refusals of the HTTP port, each with status, code and advice.
HTTP_REFUSALS: Final[Sequence[tuple[int, str, str]]] = (
    (400, "invalid_after", "`/audit`: `after` is not a time. Send ISO 8601."),
    (400, "invalid_input", "`/import`: the request is not a step of an import. Use `lithos import`."),
    (400, "invalid_scope", "`/reconcile`: send `all`, `indices`, `graph` or `provenance_projection`."),
    (401, "unauthorized", "The server requires `Authorization: Bearer` with a valid token."),
    (403, "forbidden", "The token lacks the right that the message names."),
    (403, "forbidden_host", "The host name of the request is not in `server.allowed_hosts`."),
    (403, "forbidden_origin", "The origin of the calling web page is not in `server.allowed_origins`."),
    (
        404,
        "not_found",
        "The address does not exist. An address has one spelling, without double slashes or encoded letters.",
    ),
    (405, "method_not_allowed", "The address requires another method."),
    (408, "request_timeout", "The rest of the request body did not arrive in time. Send the request again."),
    (409, "no_import", "`/import`: another import began, or the server was restarted. Run it again."),
    (
        413,
        "body_too_large",
        "Send less at once; the message names the part that is too large. Notes: "
        "`storage.max_content_size_bytes`. A call has at most 40,000 JSON values; a string counts as one "
        "value.",
    ),
    (
        429,
        "too_many_wrong_tokens",
        "Correct the token; correct tokens are accepted at once. `Retry-After` is the time to wait.",
    ),
    (
        500,
        "internal_error",
        "The server could not answer the request because of an internal error. See the server's log.",
    ),
    (503, "audit_log_unavailable", "The audit log cannot be read now."),
    (
        503,
        "vault_unavailable",
        "One of several vaults is not served now; the message says why. The server tries it again.",
    ),
    (503, "stopping", "The server is stopping. Repeat the request when it is back."),
)


def render_tools() -> str:
    """Return the reference page of all tools and their parameters."""
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
    """Return one error class for each meaning of an error code, sorted by code."""
    all_tools()  # all_tools() imports the modules that define the errors of the tools
    found = [each for each in _descend(LithosError) if "code" in vars(each)]
    return sorted(found, key=lambda each: (each.code, each.__name__))


def _descend(cls: type[LithosError]) -> Iterator[type[LithosError]]:
    for inner in cls.__subclasses__():
        yield inner
        yield from _descend(inner)


def render_errors() -> str:
    """Return the reference page of all error codes and their meanings."""
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
    """Return the reference page of all event types and their payloads."""
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
