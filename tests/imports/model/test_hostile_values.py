"""Conversations of any JSON value, which are read or refused without a crash (behaviour 241)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.imports.model.chats import NoConversation, read_chatgpt, read_claude
from lithos.imports.model.conversation import Conversation, blocks_of
from lithos.imports.model.observations import Entity, NoGraphLine, Relation, read_line

SCRAPS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["a", "b", "text", "\ud800", "", "user"])
)
ANY = st.recursive(
    SCRAPS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
)


def maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return mappings that contain some of the fields. The values are valid or arbitrary."""
    return st.fixed_dictionaries({}, optional={key: value | ANY for key, value in fields.items()})


KEYS = st.sampled_from("abcd")
PARTS = st.lists(
    ANY | maybe(content_type=st.just("image_asset_pointer"), metadata=maybe(dalle=maybe(prompt=ANY))),
    max_size=3,
)
NODE = maybe(
    parent=KEYS,
    children=st.lists(KEYS | ANY, max_size=3),
    message=maybe(
        author=maybe(role=st.sampled_from(["user", "assistant", "tool", "system"]), name=ANY),
        content=maybe(
            content_type=st.sampled_from(["text", "code", "tether_quote", "thoughts"]), parts=PARTS, text=ANY
        ),
        create_time=st.floats(),
        recipient=ANY,
        metadata=maybe(
            model_slug=ANY, attachments=st.lists(maybe(name=ANY)), content_references=st.lists(ANY)
        ),
    ),
)
CHATGPT = st.fixed_dictionaries(
    {"mapping": st.dictionaries(KEYS, NODE | ANY, max_size=4)},
    optional={"current_node": KEYS | ANY, "title": ANY, "id": ANY, "create_time": ANY},
)
TYPES = st.sampled_from(["text", "tool_use", "tool_result", "thinking"])
BLOCK = maybe(type=TYPES, text=ANY, input=ANY, content=ANY)
CLAUDE = st.fixed_dictionaries(
    {
        "chat_messages": st.lists(
            maybe(
                uuid=KEYS, parent_message_uuid=KEYS, sender=ANY, text=ANY, content=st.lists(BLOCK),
                created_at=ANY,
                attachments=st.lists(maybe(file_name=ANY, extracted_content=ANY)),
            ),
            max_size=5,
        )
    },
    optional={
        "name": ANY, "uuid": ANY, "summary": ANY, "project": maybe(name=ANY),
        "current_leaf_message_uuid": KEYS,
    },
)  # fmt: skip


def check(read: Callable[[Any], Conversation], value: Any) -> None:
    try:
        found = read(value)
    except NoConversation:
        return
    text = "\n".join([found.id, found.title, *blocks_of(found)])
    text.encode("utf-8")
    assert "\0" not in text
    assert (found.hidden == 0) == (found.branches == 0)


@given(CHATGPT | ANY)
def test_any_chatgpt_value_is_read_or_refused(value: Any) -> None:
    """behaviour 241"""
    check(read_chatgpt, value)


@given(CLAUDE | ANY)
def test_any_claude_value_is_read_or_refused(value: Any) -> None:
    """behaviour 241"""
    check(read_claude, value)


@given(
    maybe(
        type=st.sampled_from(["entity", "relation"]), name=ANY, entityType=ANY,
        observations=st.lists(ANY, max_size=3), relationType=ANY, to=ANY,
    ) | ANY
)  # fmt: skip
def test_any_graph_line_is_read_or_refused(value: Any) -> None:
    """behaviour 241"""
    try:
        found = read_line(value)
    except NoGraphLine:
        return
    assert isinstance(found, (Entity, Relation))


def test_messages_that_are_not_a_list_are_refused() -> None:
    """behaviour 241"""
    with pytest.raises(NoConversation):
        read_claude({"chat_messages": {}})
