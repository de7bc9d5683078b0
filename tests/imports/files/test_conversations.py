"""ChatGPT and Claude exports: trees, branches, blocks, parts, shards and archives (behaviours 240, 241)."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lithos.imports.files.conversations import chatgpt_source
from lithos.imports.model.importing import Malformed, Record, RecordEdge
from lithos.notes.links.links import LinkTable, scan_targets
from tests.imports.files.samples import DATA, SOURCES, measure_peak, read, records, skipped


def node(key: str, parent: str | None, text: str, **more: Any) -> dict[str, Any]:
    role = more.pop("role", "user")
    content = more.pop("content", {"content_type": "text", "parts": [text]})
    message = {"author": {"role": role}, "content": content, "create_time": more.pop("at", 1.7e9), **more}
    return {"id": key, "parent": parent, "children": [], "message": message}


def chat(key: str, *nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    mapping = {each["id"]: each for each in nodes}
    return {
        "conversation_id": key,
        "title": "Talk",
        "mapping": mapping,
        "current_node": nodes[-1]["id"],
        **more,
    }


def write(folder: Path, *values: Any, name: str = "conversations.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(list(values)), encoding="utf-8")
    return path


def only(path: Path, kind: str = "chatgpt") -> Record:
    (record,) = read(kind, path)
    assert isinstance(record, Record)
    return record


def test_visible_branch_is_imported_with_roles_and_times() -> None:
    """behaviour 240"""
    found = records(read("chatgpt", DATA / "chatgpt"))["6f0c1f6e-91f5-4d8f-9a51-0d7f6a1d2b01"]
    headings = [line for line in found.content.splitlines() if line.startswith("## ")]
    assert headings == [
        "## User, 2023-11-09 20:00 UTC",
        "## Assistant, 2023-11-09 20:00 UTC",
        "## User, 2023-11-09 20:01 UTC",
        "## Assistant to python, 2023-11-09 20:01 UTC",
        "## Tool (python), 2023-11-09 20:01 UTC",
        "## Assistant, 2023-11-09 20:01 UTC",
    ]
    assert "1 message on 1 other branch is left out" in found.content
    assert "thrown away" not in found.content
    assert "secret profile" not in found.content
    assert "```\n2700\n```" in found.content
    assert "60 °C ([herbs](https://example.com/herbs))." in found.content
    assert found.created_at == datetime(2023, 11, 9, 20, 0, 0, 250_000, UTC)
    assert found.source_url == "https://chatgpt.com/c/6f0c1f6e-91f5-4d8f-9a51-0d7f6a1d2b01"
    assert found.properties["model"] == "gpt-4o"


def test_claude_blocks_and_attachments_are_imported() -> None:
    """behaviour 240"""
    found = records(read("claude", DATA / "claude"))["b2d7a6c0-3f0e-4b52-8f0c-9e1f5a2c7d01"]
    assert "Attachment: inventory.txt\n\n````\n12 reeds missing\n``` odd ```\n````" in found.content
    assert "Attachment: bellows.png" in found.content
    assert "Artifact: Shopping list\n\n```\n- hide glue\n- sheepskin\n```" in found.content
    assert "hmm" not in found.content
    assert "edited away" not in found.content
    assert found.properties["other_branches"] == 1
    assert found.created_at == datetime(2025, 1, 18, 9, 30, 12, 345_678, UTC)
    trains = records(read("claude", DATA / "claude"))["b2d7a6c0-3f0e-4b52-8f0c-9e1f5a2c7d02"]
    assert trains.content.startswith(
        "No train goes there; the bus from Narvik does.\n\n## User, 2024-05-31 22:00 UTC"
    )
    assert trains.properties["project"] == "Travels"


def test_claude_export_without_parents_is_read_as_one_branch(tmp_path: Path) -> None:
    """behaviour 240"""
    messages = [{"sender": "human", "text": str(number)} for number in range(3)]
    found = only(write(tmp_path, {"uuid": "a", "name": "n", "chat_messages": messages}), "claude")
    assert found.content == "## User\n\n0\n\n## User\n\n1\n\n## User\n\n2"


@pytest.mark.parametrize(
    ("nodes", "current", "texts"),
    [
        ([node("a", None, "1"), node("b", "a", "2")], "b", "12"),
        ([node("a", None, "1"), node("b", "a", "2")], None, "12"),
        ([node("a", None, "1"), node("b", "a", "2")], "gone", "12"),
        ([node("a", None, "1"), node("b", "a", "2"), node("c", "a", "3", at=1.8e9)], "?", "13"),
        ([node("a", "gone", "1"), node("b", "a", "2")], "b", "12"),
        ([node("a", "b", "1"), node("b", "a", "2")], "b", "12"),
        ([node("a", "a", "1")], "a", "1"),
    ],
)
def test_readable_part_of_a_damaged_message_tree_is_imported(
    nodes: list[dict[str, Any]], current: str | None, texts: str, tmp_path: Path
) -> None:
    """behaviour 241"""
    for each in nodes:
        parent = next((other for other in nodes if other["id"] == each["parent"]), None)
        if parent is not None:
            parent["children"].append(each["id"])
    found = only(write(tmp_path, chat("x", *nodes, current_node=current)))
    assert "".join(line for line in found.content.splitlines() if line.isdigit()) == texts


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"parts": [{"content_type": "audio_transcription", "text": "spoken"}]}, "spoken"),
        ({"parts": [{"content_type": "image_asset_pointer"}, "b"]}, "[image]\n\nb"),
        (
            {"content_type": "tether_quote", "url": "https://e.org", "title": "T", "text": "q"},
            "From T <https://e.org>:\n\nq",
        ),
        ({"content_type": "code", "language": "sql", "text": "SELECT 1"}, "```sql\nSELECT 1\n```"),
        ({"content_type": "new_thing", "result": "r"}, "r"),
        ({"content_type": "text", "parts": ["a\u0000b", None, 7, {"content_type": "x"}]}, "ab\n\n[x]"),
    ],
)
def test_chatgpt_content_of_each_type_is_imported(content: dict[str, Any], text: str, tmp_path: Path) -> None:
    """behaviour 240"""
    found = only(write(tmp_path, chat("x", node("a", None, "", content=content))))
    assert found.content.partition("\n\n")[2] == text


@pytest.mark.parametrize(
    "more",
    [
        {"role": "system"},
        {"metadata": {"is_visually_hidden_from_conversation": True}},
        {"content": {"content_type": "user_editable_context", "user_profile": "x"}},
        {"content": {"content_type": "thoughts", "thoughts": [{"content": "x"}]}},
        {"content": {"content_type": "text", "parts": [""]}},
    ],
)
def test_hidden_messages_are_not_imported(more: dict[str, Any], tmp_path: Path) -> None:
    """behaviour 240"""
    assert only(
        write(tmp_path, chat("x", node("a", None, "shown"), node("b", "a", "no", **more)))
    ).content.endswith("\n\nshown")


def test_long_conversation_is_split_into_linked_parts(tmp_path: Path) -> None:
    """behaviour 240"""
    nodes = [node("0", None, "word0 " * 50)]
    nodes += [node(str(number), str(number - 1), f"word{number} " * 50) for number in range(1, 100)]
    path = write(tmp_path, chat("id-1", *nodes, title="Long [x] #1"))
    parts = [item for item in chatgpt_source(12_000).read(path) if isinstance(item, Record)]
    assert len(parts) > 4
    assert [part.id for part in parts[:3]] == ["id-1", "id-1#2", "id-1#3"]
    assert [part.title for part in parts[:2]] == ["Long (x) -1", "Long (x) -1 (part 2)"]
    assert all(len(part.content.encode()) <= 12_000 for part in parts)
    assert all(f"word{number} " in "".join(part.content for part in parts) for number in range(100))
    assert parts[2].edges == (RecordEdge("continues", "id-1#2"),)
    assert [part.properties["part"] for part in parts] == [*range(1, len(parts) + 1)]
    table = LinkTable()
    for part in parts:
        table.add(part.id, f"{part.id}.md", part.title)
    for number, part in enumerate(parts):
        linked = [table.resolve(target) for target in scan_targets(part.content)]
        assert linked == [parts[at].id for at in (number - 1, number + 1) if 0 <= at < len(parts)]


def test_conversations_with_equal_titles_get_different_note_titles(tmp_path: Path) -> None:
    """behaviour 240"""
    talks = [chat(key, node("a", None, key), create_time=1.7e9) for key in ("aaaa-1", "bbbb-2", "cccc-3")]
    found = read("chatgpt", write(tmp_path, *talks))
    assert [item.title for item in found if isinstance(item, Record)] == [
        "Talk", "Talk (2023-11-14)", "Talk (2023-11-14) cccc-3",
    ]  # fmt: skip
    again = read("chatgpt", write(tmp_path, *reversed(talks)))
    assert {key: record.hash for key, record in records(found).items()} == {
        key: record.hash for key, record in records(again).items()
    }


def test_changed_conversation_changes_only_its_own_hash(tmp_path: Path) -> None:
    """behaviour 240"""
    first, second = chat("a", node("1", None, "x")), chat("b", node("1", None, "y"))
    before = records(read("chatgpt", write(tmp_path, first, second)))
    second["mapping"]["1"]["message"]["content"]["parts"] = ["z"]
    after = records(read("chatgpt", write(tmp_path, first, second)))
    assert [before[key].hash == after[key].hash for key in "ab"] == [True, False]


def test_numbered_files_and_archive_are_read_like_one_export(tmp_path: Path) -> None:
    """behaviour 240"""
    talks = [chat(str(number), node("a", None, f"text {number}"), title=f"T{number}") for number in range(5)]
    folder = tmp_path / "export"
    folder.mkdir()
    write(folder, *talks[:3], name="conversations-000.json")
    write(folder, *talks[2:], name="conversations-001.json")
    (folder / "conversations.json.index").write_text("{}")
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for file in sorted(folder.iterdir()):
            opened.write(file, f"export/{file.name}")
    for path in (folder, archive):
        assert SOURCES["chatgpt"].recognises(path)
        items = read("chatgpt", path)
        assert [record.title for record in records(items).values()] == ["T0", "T1", "T2", "T3", "T4"]
        assert skipped(items) == {"conversations-001[0]": "the conversation 2 occurs twice in the export"}


def test_conversations_before_damage_in_an_archive_are_read(tmp_path: Path) -> None:
    """behaviour 241"""
    talks = [chat(str(number), node("a", None, "text " * 900), title=f"T{number}") for number in range(300)]
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as opened:
        opened.writestr("conversations.json", json.dumps(talks))
    data = bytearray(archive.read_bytes())
    data[800_000] ^= 0xFF
    archive.write_bytes(bytes(data))
    items = read("chatgpt", archive)
    assert len(records(items)) >= 150
    assert "the rest cannot be read" in skipped(items)["conversations"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_export_with_a_byte_order_mark_is_read(encoding: str, tmp_path: Path) -> None:
    """behaviour 241"""
    path = tmp_path / "conversations.json"
    path.write_bytes(
        json.dumps([chat("x", node("a", None, "Rösten 🌿"))], ensure_ascii=False).encode(encoding)
    )
    assert SOURCES["chatgpt"].recognises(path)
    assert only(path).content.endswith("Rösten 🌿")


@pytest.mark.parametrize("wrap", [lambda each: each, lambda each: {"conversations": [each]}])
def test_file_with_a_single_conversation_is_read(wrap: Any, tmp_path: Path) -> None:
    """behaviour 240"""
    path = tmp_path / "one.json"
    path.write_text(json.dumps(wrap(chat("x", node("a", None, "alone")))))
    assert only(path).content.endswith("alone")


def test_memory_use_depends_only_on_the_largest_conversation(tmp_path: Path) -> None:
    """behaviour 241: under 300 MB for a file of any size."""
    nodes = [node("0", None, "x" * 500)]
    nodes += [node(str(number), str(number - 1), "lavender " * 1_000) for number in range(1, 50)]
    big, peaks = chat("big", *nodes), []
    for count in (1, 10, 30):  # the first run warms up and is not compared
        path = write(tmp_path, big, *(chat(f"id-{number}", *nodes[:10]) for number in range(count)))
        found, peak = measure_peak(chatgpt_source(), path)
        assert found >= count + 1
        peaks.append(peak)
    assert peaks[2] < peaks[1] + 500_000
    assert peaks[2] < 10 * len(json.dumps(big))


def test_chatgpt_conversation_in_a_claude_export_is_reported(tmp_path: Path) -> None:
    """behaviour 241"""
    (item,) = read("claude", write(tmp_path, chat("x", node("a", None, "t"))))
    assert isinstance(item, Malformed)
    assert "--from chatgpt" in item.reason
