"""A conversation of a Claude export: messages in order, content in blocks, attachments with their text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lithos.core.formats.chatgpt import NoConversation, walk_up
from lithos.core.formats.conversation import Conversation, Message, fence
from lithos.core.formats.texts import clean, clean_line, parse_moment
from lithos.core.limits import ID

_ROLES: Final = {"human": "User", "user": "User", "assistant": "Assistant"}
#: Blocks that are no part of what was said.
_SILENT: Final = frozenset(("thinking", "redacted_thinking", "token_budget", "flag"))
#: What stands for the parent of a first message.
_NO_PARENT: Final = "00000000-0000-4000-8000-000000000000"


def is_claude(value: Any) -> bool:
    """Whether a JSON value is a conversation of Claude."""
    return isinstance(value, dict) and isinstance(value.get("chat_messages"), list)


def read_claude(value: Any) -> Conversation:
    """The conversation; raises `NoConversation`."""
    if not is_claude(value):
        raise NoConversation("it has no `chat_messages`, as a Claude conversation has")
    every = [each for each in value["chat_messages"] if isinstance(each, dict)]
    path, is_whole = _shown(every, value.get("current_leaf_message_uuid"))
    on_path = {id(each) for each in path}
    others = [each for each in every if id(each) not in on_path and _message(each) is not None]
    shown = [message for each in path if (message := _message(each)) is not None]
    parents = {clean_line(each.get("uuid"), ID) for each in others}
    branches = sum(clean_line(each.get("parent_message_uuid"), ID) not in parents for each in others)
    times = [message.at for message in shown if message.at is not None]
    summary = value.get("summary")
    project = value.get("project")
    remarks = [clean(summary).strip()] if isinstance(summary, str) and summary.strip() else []
    if not is_whole:
        remarks.append("*The beginning of this conversation is missing in the export.*")
    name = clean_line(project.get("name")) if isinstance(project, dict) else ""
    return Conversation(
        id=clean_line(value.get("uuid"), ID),
        title=clean_line(value.get("name")),
        messages=tuple(shown),
        created_at=parse_moment(value.get("created_at")) or min(times, default=None),
        updated_at=parse_moment(value.get("updated_at")) or max(times, default=None),
        model=clean_line(value.get("model"), ID) or None,
        branches=branches,
        hidden=len(others),
        remarks=tuple(remarks),
        properties={"project": name} if name else {},
    )


def _shown(every: list[dict[str, Any]], leaf: Any) -> tuple[list[dict[str, Any]], bool]:
    """The messages of the branch that was open last, and whether it begins at a first one.

    Exports before 2025 name no parents: then all messages are one branch.
    """
    by_id = {key: each for each in every if isinstance(key := each.get("uuid"), str)}
    parents = {key: each.get("parent_message_uuid") for key, each in by_id.items()}
    named = [parent for parent in parents.values() if isinstance(parent, str) and parent in by_id]
    if len(by_id) != len(every) or (len(named) == len(set(named)) and len(named) >= len(every) - 1):
        return every, True
    if not named:
        return every, True
    with_children = frozenset(named)
    leaves = [key for key in by_id if key not in with_children] or list(by_id)
    path, _ = walk_up(leaf if isinstance(leaf, str) and leaf in by_id else leaves[-1], parents)
    first = parents[path[0]] if path else None
    return [by_id[key] for key in path], first in (None, "", _NO_PARENT) or first in path


def _message(value: Mapping[str, Any]) -> Message | None:
    """The message if it says something."""
    blocks = value.get("content")
    texts = [_block(each) for each in blocks] if isinstance(blocks, list) else []
    if not any(texts) and isinstance(text := value.get("text"), str):
        texts = [clean(text)]
    text = "\n\n".join(each.strip("\n") for each in (*texts, *_attachments(value)) if each.strip())
    if not text:
        return None
    sender = clean_line(value.get("sender"), 60)
    role = _ROLES.get(sender) or sender.capitalize() or "Unknown"
    return Message(role, text, parse_moment(value.get("created_at")))


def _block(block: Any) -> str:
    if isinstance(block, str):
        return clean(block)
    if not isinstance(block, dict):
        return ""
    kind = clean_line(block.get("type"), 60)
    if kind in _SILENT:
        return ""
    if kind == "tool_use":
        return _tool_use(block)
    if kind == "tool_result":
        said = _result(block)
        return f"Result of {clean_line(block.get('name'), 100) or 'a tool'}:\n\n{fence(said)}" if said else ""
    for key in ("text", "title"):
        if isinstance(text := block.get(key), str) and text.strip():
            return clean(text)
    name = kind.replace("_", " ")
    return f"[{name}]" if name and kind != "text" else ""


def _tool_use(block: Mapping[str, Any]) -> str:
    """An artifact with its text, another tool with its arguments."""
    given = block.get("input")
    name = clean_line(block.get("name"), 100) or "a tool"
    if isinstance(given, dict) and isinstance(content := given.get("content"), str) and content.strip():
        title = clean_line(given.get("title"), 300) or name
        return f"Artifact: {title}\n\n{fence(clean(content), clean_line(given.get('language'), 40))}"
    if not given:
        return f"[{name}]"
    return f"Call of {name}:\n\n{fence(clean(json.dumps(given, ensure_ascii=False, indent=1)), 'json')}"


def _result(block: Mapping[str, Any]) -> str:
    content = block.get("content")
    if isinstance(content, str):
        return clean(content).strip()
    texts = (
        [each.get("text") for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    )
    return "\n\n".join(clean(text) for text in texts if isinstance(text, str)).strip()


def _attachments(value: Mapping[str, Any]) -> Iterator[str]:
    """Attached files by name, with the text that Claude read of them."""
    named = set()
    for key in ("attachments", "files", "files_v2"):
        found = value.get(key)
        for each in found if isinstance(found, list) else ():
            if not isinstance(each, dict):
                continue
            name = clean_line(each.get("file_name"), 300) or "without a name"
            text = each.get("extracted_content")
            if isinstance(text, str) and text.strip():
                yield f"Attachment: {name}\n\n{fence(clean(text))}"
            elif name not in named:
                yield f"Attachment: {name}"
            named.add(name)
