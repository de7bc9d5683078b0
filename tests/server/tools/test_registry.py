"""Tool lists and tool calls: profiles, schemas, annotations, and protocol errors."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lithos.server.http.ports import compact_json
from lithos.server.mcp.server import ALWAYS_LOAD, _wire_tool
from lithos.server.tools.arguments import ArgumentFault, ToolSpec, UnknownTool
from tests.servers import Lithos, refusal, serving

#: Every tool with its smallest profile (core, standard, full) and its hints, in the order of the
#: specification.
TABLE = """
lithos_write C D; lithos_read C RI; lithos_delete S DI; lithos_search C RI; lithos_retrieve C R;
lithos_edge_upsert S I; lithos_edge_list S RI; lithos_conflict_resolve S; lithos_cache_lookup C RI;
lithos_list C RI; lithos_related S RI; lithos_tags S RI; lithos_agent_register F I; lithos_agent_info F RI;
lithos_agent_list F RI; lithos_task_create C; lithos_task_update F I; lithos_task_claim C;
lithos_task_renew S; lithos_task_release S I; lithos_task_complete C I; lithos_task_cancel F I;
lithos_task_list C RI; lithos_task_status S RI; lithos_node_stats S RI; lithos_finding_post C;
lithos_finding_list C RI; lithos_stats F RI; lithos_note_update S D; lithos_task_get F RI;
lithos_task_reopen F I; lithos_task_ready F RI; lithos_task_blocked F RI; lithos_task_children F RI;
lithos_task_edge_upsert F I; lithos_task_edge_list F RI; lithos_task_spawn F; lithos_context C R;
lithos_task_next C; lithos_note_move S D; lithos_note_edit S D; lithos_history S RI;
lithos_impact S; lithos_restore S D; lithos_proposals S RI;
lithos_proposal_withdraw S I; lithos_agent_archive F I;
lithos_task_edge_delete F DI
"""
TOOLS = {name: (profile, "".join(letters)) for name, profile, *letters in map(str.split, TABLE.split(";"))}
ORDER = list(TOOLS)
#: For each profile: letters of the profiles that it includes, and its number of tools.
SHOWN = {"core": ("C", 14), "standard": ("CS", 32), "full": ("CSF", 48)}
#: Maximum bytes of the whole listing, and of the parts that clients pass to their models.
LARGEST_LISTING, LARGEST_FOR_MODELS = 26_500, 22_000


def hints(spec: ToolSpec) -> str:
    return "R" * spec.read_only + "D" * spec.destructive + "I" * spec.idempotent


@pytest.mark.needs("proposals")
@pytest.mark.parametrize("profile", ["core", "standard", "full"])
async def test_profile_lists_its_tools_but_all_tools_are_callable(tmp_path: Path, profile: Any) -> None:
    """behaviours 164, 171"""
    profiles, number = SHOWN[profile]
    shown = {name: letters for name, (of_tool, letters) in TOOLS.items() if of_tool in profiles}
    assert len(shown) == number
    async with serving(tmp_path, server={"tools": profile}) as lithos:
        listed = {spec.name: hints(spec) for spec in lithos.server.tools.listed()}
        assert list(listed.items()) == list(shown.items())
        assert (await lithos.call("lithos_tags")) == {"tags": {}, "total": 0}
        assert "documents" in await lithos.call("lithos_stats")
        for tool in ORDER:
            with suppress(ArgumentFault):  # a required argument is missing, but the tool exists
                await lithos.call(tool)
        for legacy in ("lithos_links", "lithos_semantic", "lithos_provenance"):
            with pytest.raises(UnknownTool):
                await lithos.call(legacy)


#: Tools that clients show on the first turn, even if they defer the other tools.
FIRST_TURN = {"lithos_context", "lithos_search", "lithos_read", "lithos_write"}


@pytest.mark.parametrize("profile", ["core", "standard", "full", "connector"])
async def test_listing_has_titles_and_marks_four_tools_for_the_first_turn(
    tmp_path: Path, profile: Any
) -> None:
    """behaviour 308"""
    async with serving(tmp_path, server={"tools": profile, "legacy_tools": True}) as lithos:
        wire = {tool["name"]: tool for tool in map(_wire_tool, lithos.server.tools.listed())}
    marked = {name for name, tool in wire.items() if tool.get("_meta") == {ALWAYS_LOAD: True}}
    assert marked == FIRST_TURN & wire.keys()
    assert [name for name, tool in wire.items() if "_meta" in tool and name not in marked] == []
    titles = [tool["title"] for tool in wire.values()]
    assert all(title[:1].isupper() and not title.endswith(".") for title in titles)
    assert len(set(titles)) == len(titles)


async def test_tool_listing_is_small_and_describes_every_parameter(tmp_path: Path) -> None:
    """behaviour 172"""
    async with serving(tmp_path) as lithos:
        wire = [_wire_tool(spec) for spec in lithos.server.tools.listed()]
    for_models = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in wire]
    assert len(compact_json({"tools": for_models}).encode()) <= LARGEST_FOR_MODELS
    assert len(compact_json({"tools": wire}).encode()) <= LARGEST_LISTING
    for tool in wire:
        assert set(tool["annotations"]) == {
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        }
        assert tool["annotations"]["openWorldHint"] is False
        assert "outputSchema" not in tool
        assert tool["description"]
        schema = tool["inputSchema"]
        for name, parameter in schema["properties"].items():
            assert parameter["description"], (tool["name"], name)
            assert "\n" not in parameter["description"]
            kinds = {kind["type"] for kind in parameter.get("anyOf", [parameter])}
            assert kinds <= {"string", "integer", "number", "boolean", "array", "object"}
        assert set(schema.get("required", ())) <= set(schema["properties"])


async def test_each_search_tool_says_when_to_use_another(tmp_path: Path) -> None:
    """docs/spec/tools.md §1.5: covers `lithos_context`, `_cache_lookup`, `_retrieve` and `_search`."""
    async with serving(tmp_path, server={"tools": "core"}) as lithos:
        told = {spec.name: spec.description for spec in lithos.server.tools.listed()}
    ways = {"lithos_context", "lithos_cache_lookup", "lithos_retrieve", "lithos_search"}
    for name in ways:
        assert any(other in told[name] for other in ways - {name}), (name, told[name])
    assert told["lithos_context"].startswith("Start here")


#: Nouns that must not be the first word of a description. A description for a model begins with a verb.
NOUNS = {
    "a",
    "agents",
    "all",
    "an",
    "changes",
    "children",
    "edges",
    "notes",
    "open",
    "tasks",
    "the",
    "versions",
}


async def test_tool_descriptions_begin_with_a_verb(tmp_path: Path) -> None:
    """docs/spec/mcp.md §3"""
    async with serving(tmp_path, server={"tools": "full", "legacy_tools": True}) as lithos:
        for spec in lithos.server.tools.listed():
            first = spec.description.split()[0]
            assert first.istitle(), spec.name
            assert first.lower() not in NOUNS | {"how", "what", "who"}, spec.name
            assert spec.description.endswith("."), spec.name


async def test_rare_parameters_are_listed_only_by_the_full_profile(tmp_path: Path) -> None:
    """docs/spec/tools.md §1.5"""
    listed: dict[str, dict[str, Mapping[str, Any]]] = {}
    for profile in ("standard", "full"):
        async with serving(tmp_path / profile, server={"tools": profile}) as lithos:
            listed[profile] = {spec.name: spec.input_schema for spec in lithos.server.tools.listed()}
            found = await lithos.call("lithos_search", query="zebra", threshold=0.1, offset=0)
            assert found["results"] == []
            assert (await lithos.listed(content_query="zebra")) == []
    for name, short in listed["standard"].items():
        whole = listed["full"][name]
        assert whole["additionalProperties"] is False
        assert "additionalProperties" not in short
        assert short["properties"].items() <= whole["properties"].items()
        assert short.get("required") == whole.get("required")
    rare = (
        listed["full"]["lithos_search"]["properties"].keys()
        - listed["standard"]["lithos_search"]["properties"]
    )
    assert rare == {"threshold", "seed_ids", "graph_depth", "entities", "offset"}


#: Parameters in the specification: required parameters first, then optional parameters.
PARAMETERS = {
    "lithos_write": (
        "agent",
        "title content tags confidence path id source_task source_url derived_from_ids ttl_hours expires_at "
        "expected_version schema_version namespace access_scope note_type status summaries metadata "
        "on_conflict project replace_all request_id",
    ),
    "lithos_read": ("", "id path title max_length offset outline section agent_id version as_of place"),
    "lithos_history": ("", "id path changed_by since deleted limit before diff offset"),
    "lithos_delete": ("agent", "id path expected_version"),
    "lithos_impact": ("", "id path action agent reason open_tasks offset"),
    "lithos_related": ("", "id path include depth namespace offset"),
    "lithos_node_stats": ("", "node_id path"),
    "lithos_note_edit": ("op agent", "id path section text find expected_version expected_hash"),
    "lithos_search": (
        "query",
        "limit mode tags author path_prefix project threshold seed_ids graph_depth entities agent_id offset",
    ),
    "lithos_context": (
        "",
        "query task_id budget agent_id tags path_prefix namespace_filter since sections project",
    ),
    "lithos_retrieve": (
        "query",
        "limit namespace_filter agent_id task_id surface_conflicts max_context_nodes tags path_prefix "
        "project offset",
    ),
    "lithos_cache_lookup": ("query", "source_url max_age_hours min_confidence limit tags max_length project"),
    "lithos_list": (
        "",
        "path_prefix tags author since limit offset title_contains content_query metadata_match entities "
        "project",
    ),
    "lithos_tags": ("", "prefix offset"),
    "lithos_agent_register": ("id", "name type metadata"),
    "lithos_agent_info": ("id", ""),
    "lithos_agent_list": ("", "type active_since include_archived offset"),
    "lithos_stats": ("", ""),
    "lithos_proposals": ("", "proposed_by status id offset"),
    "lithos_proposal_withdraw": ("agent id", ""),
}
DEFAULTS = {
    "lithos_context": {"budget": 2_000},
    "lithos_write": {"on_conflict": "refuse", "replace_all": False},
    "lithos_read": {"offset": 0, "outline": False},
    "lithos_search": {"limit": 10, "mode": "hybrid", "graph_depth": 2},
    "lithos_retrieve": {"limit": 10, "surface_conflicts": False},
    "lithos_cache_lookup": {"min_confidence": 0.5, "limit": 3, "max_length": 4_000},
    "lithos_list": {"limit": 50, "offset": 0},
    "lithos_history": {"deleted": False, "limit": 20},
    "lithos_impact": {"action": "preview", "open_tasks": False},
    "lithos_related": {"depth": 1},
    "lithos_proposals": {"status": "pending"},
    "lithos_agent_list": {"include_archived": False},
}


@pytest.mark.needs("proposals")
async def test_parameters_and_defaults_match_the_spec(tmp_path: Path) -> None:
    """behaviour 172"""
    async with serving(tmp_path, server={"tools": "full"}) as lithos:
        schemas = {spec.name: spec.input_schema for spec in lithos.server.tools.listed()}
    for name, (required, optional) in PARAMETERS.items():
        properties = schemas[name]["properties"]
        assert sorted(properties) == sorted([*required.split(), *optional.split()])
        assert schemas[name].get("required", []) == required.split()
        defaults = {key: value["default"] for key, value in properties.items() if "default" in value}
        assert defaults == DEFAULTS.get(name, {})


@pytest.mark.needs("proposals")
async def test_unknown_tools_and_arguments_are_protocol_errors(lithos: Lithos) -> None:
    """behaviour 173"""
    with pytest.raises(UnknownTool, match=r"^Unknown tool: 'lithos_frobnicate'$"):
        await lithos.call("lithos_frobnicate")
    for tool in ORDER:
        with pytest.raises(ArgumentFault, match="bogus"):
            await lithos.call(tool, bogus=1)
    with pytest.raises(ArgumentFault) as caught:
        await lithos.call("lithos_stats", **{"\ud800" * 5000: 1})
    assert len(caught.value.message.encode()) < 2000


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("lithos_write", {"title": "T", "content": "x"}, "agent"),
    ("lithos_write", {"agent": "a", "title": 5}, "title"),
    ("lithos_write", {"agent": "a", "title": "T", "content": ["x"]}, "content"),
    ("lithos_write", {"title": "T", "content": "x", "agent": "a", "tags": "x,y"}, "tags"),
    ("lithos_write", {"title": "T", "content": "x", "agent": "a", "tags": [1]}, "tags"),
    ("lithos_write", {"title": "T", "content": "x", "agent": "a", "metadata": "x"}, "metadata"),
    ("lithos_write", {"title": "T", "content": "x", "agent": "a", "metadata": []}, "metadata"),
    ("lithos_write", {"title": "T", "content": "x", "agent": "a", "ttl_hours": "soon"}, "ttl_hours"),
    ("lithos_write", {"title": "T", "content": "x", "agent": "a", "ttl_hours": True}, "ttl_hours"),
    (
        "lithos_write",
        {"title": "T", "content": "x", "agent": "a", "expected_version": 1.5},
        "expected_version",
    ),
    ("lithos_write", {"title": "T", "content": "x", "agent": "a", "summaries": "x"}, "summaries"),
    ("lithos_delete", {"agent": "a"}, "id"),
    ("lithos_delete", {"id": "x"}, "agent"),
    ("lithos_search", {}, "query"),
    ("lithos_search", {"query": "x", "limit": "many"}, "limit"),
    ("lithos_search", {"query": "x", "limit": True}, "limit"),
    ("lithos_search", {"query": "x", "limit": 10**400}, "limit"),
    ("lithos_search", {"query": "x", "limit": "nan"}, "limit"),
    ("lithos_read", {"max_length": {}}, "max_length"),
    ("lithos_list", {"metadata_match": "x"}, "metadata_match"),
    ("lithos_agent_info", {}, "id"),
]


async def test_error_names_missing_and_wrongly_typed_arguments(lithos: Lithos) -> None:
    """behaviours 47, 173"""
    for tool, arguments, named in WRONG:
        with pytest.raises(ArgumentFault, match=f"'{named}'"):
            await lithos.call(tool, **arguments)
    assert lithos.files() == []


async def test_error_names_the_invalid_list_item(lithos: Lithos) -> None:
    wrong = [(1, "1"), (1e400, "a very large number"), (None, "null"), (True, "true"), ([], "a list")]
    for item, told in wrong:
        with pytest.raises(ArgumentFault, match=f"'tags' must be a list of texts, but item 2 is {told}"):
            await lithos.call("lithos_write", title="T", content="x", agent="a", tags=["x", item])


async def test_numeric_text_is_accepted_as_a_number(lithos: Lithos) -> None:
    """behaviour 173"""
    note = await lithos.create("Zebra", "zebra", schema_version="3")
    assert (await lithos.read(note, max_length="2"))["truncated"]
    assert (await lithos.read(note))["metadata"]["schema_version"] == 3
    assert await lithos.found("zebra", limit="1", threshold="0.1") == ["Zebra"]
    assert await lithos.found("zebra", limit=1.0) == ["Zebra"]


async def blank(lithos: Lithos, tool: str, name: str, **others: Any) -> str:
    return refusal(await lithos.call(tool, **others, **{name: " \n"}), "invalid_input")


async def test_required_text_must_not_be_blank(lithos: Lithos) -> None:
    """behaviour 173"""
    write = {"title": "T", "content": "", "agent": "a"}
    for name in ("title", "agent"):
        assert name in await blank(
            lithos, "lithos_write", name, **{k: v for k, v in write.items() if k != name}
        )
    assert "agent" in await blank(lithos, "lithos_delete", "agent", id="x")
    assert "id" in await blank(lithos, "lithos_delete", "id", agent="a")
    assert (await lithos.write(**write | {"content": " \n\t "}))["status"] == "created"
    assert (await lithos.call("lithos_read", path="t"))["content"] == ""
    assert await lithos.found(" ") == []
