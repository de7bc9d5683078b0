"""Parser for an exported conversation of ChatGPT or Claude. Both formats are undocumented.

A ChatGPT conversation is a tree of messages. The branch that was last open is imported: `mapping` contains
the nodes by id, each with `parent`, `children` and optionally a `message`, and `current_node` is the last
node of the open branch. The parser supports exports from 2023 to 2026. A Claude conversation is a list of
messages, with blocks of content, and attachments that include their text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from lithos.imports.model.conversation import Conversation, Message, fence
from lithos.imports.model.texts import clean, clean_line, parse_moment
from lithos.kernel.values.limits import ID

_ROLES: Final = {"user": "User", "assistant": "Assistant"}
#: Roles and types of messages that were not visible to the user: instructions, memory, and notes of the
#: model.
_HIDDEN_TYPES: Final = frozenset(
    ("user_editable_context", "model_editable_context", "thoughts", "reasoning_recap", "system_error_hidden")
)
_CODE_TYPES: Final = frozenset(("code", "execution_output"))
#: Citation markers in the text: private-use characters around a reference, which the web page replaces.
_CITATION: Final = re.compile("\ue200[^\ue200\ue201]{0,4000}\ue201")
#: Keys of the text in the different content types.
_TEXT_KEYS: Final = ("text", "result", "content", "summary")


class NoConversation(Exception):
    """Error: a value is not a conversation of this format. The message is the reason."""


def is_chatgpt(value: Any) -> bool:
    """Return whether a JSON value is a ChatGPT conversation."""
    return isinstance(value, dict) and isinstance(value.get("mapping"), dict)


def read_chatgpt(value: Any) -> Conversation:
    """Return the conversation. Raises `NoConversation`."""
    if not is_chatgpt(value):
        raise NoConversation("it has no `mapping` of messages, which every ChatGPT conversation has")
    nodes = {key: node for key, node in value["mapping"].items() if isinstance(node, dict)}
    leaf = value.get("current_node")
    if not isinstance(leaf, str) or leaf not in nodes:
        leaf = _newest(nodes)
    path, is_whole = walk_up(leaf, {key: node.get("parent") for key, node in nodes.items()})
    shown = [message for key in path if (message := _message(nodes[key])) is not None]
    on_path = frozenset(path)
    others = [key for key in nodes if key not in on_path and _message(nodes[key]) is not None]
    forks = {_fork(key, nodes, on_path) for key in others}
    times = [message.at for message in shown if message.at is not None]
    identity = next(
        (text for key in ("conversation_id", "id") if (text := clean_line(value.get(key), ID))), ""
    )
    return Conversation(
        id=identity,
        title=clean_line(value.get("title")),
        messages=tuple(shown),
        created_at=parse_moment(value.get("create_time")) or min(times, default=None),
        updated_at=parse_moment(value.get("update_time")) or max(times, default=None),
        model=_model(value, [nodes[key] for key in path]),
        branches=max(len(forks - {""}), bool(others)),
        hidden=len(others),
        remarks=() if is_whole else ("*The beginning of this conversation is missing from the export.*",),
        properties={"gizmo_id": gizmo} if (gizmo := clean_line(value.get("gizmo_id"), ID)) else {},
    )


def walk_up(leaf: str | None, parents: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Return the ids from the root to `leaf`, and whether the root was reached without a loop or gap."""
    path: dict[str, None] = {}
    at: Any = leaf
    while isinstance(at, str) and at in parents and at not in path:
        path[at] = None
        at = parents[at]
    return [*reversed(path)], not at


def _fork(key: str, nodes: Mapping[str, dict[str, Any]], on_path: frozenset[str]) -> str:
    """Return the topmost node of the branch that contains `key`. The number of steps is limited."""
    for _ in range(_LONGEST_WALK):
        parent = nodes[key].get("parent")
        if not isinstance(parent, str) or parent in on_path or parent not in nodes or parent == key:
            return key
        key = parent
    return ""


#: Maximum number of steps up a branch. More steps are only possible in a loop.
_LONGEST_WALK: Final = 200


def _newest(nodes: dict[str, dict[str, Any]]) -> str | None:
    """Return the leaf with the latest message. If several leaves are equally late, return the last leaf."""
    best: tuple[float, str] | None = None
    for key, node in nodes.items():
        children = node.get("children")
        if isinstance(children, list) and any(isinstance(each, str) and each in nodes for each in children):
            continue
        message = node.get("message")
        at = parse_moment(message.get("create_time")) if isinstance(message, dict) else None
        rank = at.timestamp() if at is not None else float("-inf")
        if best is None or rank >= best[0]:
            best = rank, key
    return best[1] if best else next(reversed(nodes), None)


def _model(value: Mapping[str, Any], path: list[dict[str, Any]]) -> str | None:
    for node in reversed(path):
        message = node.get("message")
        metadata = message.get("metadata") if isinstance(message, dict) else None
        if isinstance(metadata, dict) and (name := clean_line(metadata.get("model_slug"), ID)):
            return name
    return clean_line(value.get("default_model_slug"), ID) or None


def _message(node: Mapping[str, Any]) -> Message | None:
    """Return the message of a node if it was visible to the user and has content."""
    message = node.get("message")
    if not isinstance(message, dict):
        return None
    author, content, metadata = (_mapping(message.get(key)) for key in ("author", "content", "metadata"))
    role, kind = author.get("role"), clean_line(content.get("content_type"), 60)
    if role not in ("user", "assistant", "tool") or kind in _HIDDEN_TYPES:
        return None
    if metadata.get("is_visually_hidden_from_conversation") or metadata.get("is_user_system_message"):
        return None
    text = _cite("\n\n".join(filter(None, _texts(content))), metadata)
    if kind in _CODE_TYPES and text.strip():
        text = fence(text, clean_line(content.get("language"), 40).removeprefix("unknown"))
    text = "\n\n".join(filter(None, (text.strip("\n"), *_attachments(metadata))))
    if not text.strip():
        return None
    return Message(_role(str(role), author, message), text, parse_moment(message.get("create_time")))


def _role(role: str, author: Mapping[str, Any], said: Mapping[str, Any]) -> str:
    """Return a label such as `User`, `Assistant`, `Assistant to python` or `Tool (browser)`."""
    if role == "tool":
        name = clean_line(author.get("name"), 100)
        return f"Tool ({name})" if name else "Tool"
    to = clean_line(said.get("recipient"), 100)
    return _ROLES[role] + (f" to {to}" if role == "assistant" and to not in ("", "all") else "")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the text of each content part, or the kind of a part without text."""
    parts = content.get("parts")
    if isinstance(parts, list):
        for part in parts:
            yield _part(part)
    elif content.get("content_type") == "tether_quote":
        title, url = clean_line(content.get("title")), clean_line(content.get("url"))
        yield f"From {title} {f'<{url}>' if url else ''}".rstrip() + ":"
        yield _text_of(content)
    else:
        yield _text_of(content)


def _part(part: Any) -> str:
    if isinstance(part, str):
        return clean(part)
    if not isinstance(part, dict):
        return ""
    if text := _text_of(part):
        return text
    kind = clean_line(part.get("content_type"), 60)
    name = kind.removesuffix("_asset_pointer").replace("_", " ")
    dalle = _mapping(_mapping(part.get("metadata")).get("dalle"))
    prompt = clean_line(dalle.get("prompt"), 2_000)
    return f"[{name}{f': {prompt}' if prompt else ''}]" if name else ""


def _text_of(content: Mapping[str, Any]) -> str:
    for key in _TEXT_KEYS:
        if isinstance(text := content.get(key), str) and text.strip():
            return clean(text)
    return ""


def _attachments(metadata: Mapping[str, Any]) -> Iterator[str]:
    found = metadata.get("attachments")
    for each in found if isinstance(found, list) else ():
        if name := clean_line(_mapping(each).get("name"), 300):
            yield f"Attachment: {name}"


def _cite(text: str, metadata: Mapping[str, Any]) -> str:
    """Return the text with citation markers replaced by links."""
    if "\ue200" not in text:
        return text
    references = metadata.get("content_references")
    links = {
        each["matched_text"]: clean(each["alt"]) if isinstance(each.get("alt"), str) else ""
        for each in (references if isinstance(references, list) else ())
        if isinstance(each, dict) and isinstance(each.get("matched_text"), str)
    }
    return _CITATION.sub(lambda found: links.get(found[0], ""), text)


_SENDERS: Final = {"human": "User", "user": "User", "assistant": "Assistant"}
#: Types of blocks that are not part of the conversation.
_SILENT: Final = frozenset(("thinking", "redacted_thinking", "token_budget", "flag"))
#: Placeholder for the parent of a first message.
_NO_PARENT: Final = "00000000-0000-4000-8000-000000000000"


def is_claude(value: Any) -> bool:
    """Return whether a JSON value is a Claude conversation."""
    return isinstance(value, dict) and isinstance(value.get("chat_messages"), list)


def read_claude(value: Any) -> Conversation:
    """Return the conversation. Raises `NoConversation`."""
    if not is_claude(value):
        raise NoConversation("it has no `chat_messages`, which every Claude conversation has")
    every = [each for each in value["chat_messages"] if isinstance(each, dict)]
    path, is_whole = _shown(every, value.get("current_leaf_message_uuid"))
    on_path = {id(each) for each in path}
    others = [each for each in every if id(each) not in on_path and _said(each) is not None]
    shown = [message for each in path if (message := _said(each)) is not None]
    parents = {clean_line(each.get("uuid"), ID) for each in others}
    branches = sum(clean_line(each.get("parent_message_uuid"), ID) not in parents for each in others)
    times = [message.at for message in shown if message.at is not None]
    summary = value.get("summary")
    project = value.get("project")
    remarks = [clean(summary).strip()] if isinstance(summary, str) and summary.strip() else []
    if not is_whole:
        remarks.append("*The beginning of this conversation is missing from the export.*")
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
    """Return the messages of the branch that was last open, and whether it begins with a first message.

    Exports before 2025 do not name parents. All their messages form one branch.
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


def _said(value: Mapping[str, Any]) -> Message | None:
    """Return a message if it has content, or None."""
    blocks = value.get("content")
    texts = [_block(each) for each in blocks] if isinstance(blocks, list) else []
    if not any(texts) and isinstance(text := value.get("text"), str):
        texts = [clean(text)]
    text = "\n\n".join(each.strip("\n") for each in (*texts, *_attached(value)) if each.strip())
    if not text:
        return None
    sender = clean_line(value.get("sender"), 60)
    role = _SENDERS.get(sender) or sender.capitalize() or "Unknown"
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
    """Return the text of an artifact, or the arguments of another tool call."""
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


def _attached(value: Mapping[str, Any]) -> Iterator[str]:
    """Yield the attached files with their names and the text that Claude extracted from them."""
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
