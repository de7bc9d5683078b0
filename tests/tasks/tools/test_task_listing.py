"""Parameters and defaults of the task tools in the tool list."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithos.server.tools.arguments import ArgumentFault
from tests.servers import MISSING_ID, Lithos, refusal, serving

#: Required and optional parameters by tool name, in the order of the specification. contract/test_registry.py
#: checks the other tools.
TOOLS = {
    "task_create": ("title agent", "description tags metadata task_type depends_on parent_task_id "
        "project request_id"),
    "task_update": ("task_id agent", "title description tags metadata"),
    "task_claim": ("task_id aspect agent", "ttl_minutes"),
    "task_renew": ("task_id aspect agent", "ttl_minutes fence"),
    "task_release": ("task_id aspect agent", "fence failed"),
    "task_complete": ("task_id agent", "outcome cited_nodes misleading_nodes receipt_id fence"),
    "task_cancel": ("task_id agent", "reason"),
    "task_list": (
        "",
        "created_by status tags since resolved_since with_claims metadata_match task_type project "
        "offset",
    ),
    "task_status": ("", "task_id offset"),
    "finding_post": ("task_id agent summary", "knowledge_id fence request_id"),
    "finding_list": ("task_id", "since offset"),
    "task_get": ("task_id", ""),
    "task_reopen": ("task_id agent", ""),
    "task_ready": ("", "project tags metadata_match limit with_claims offset"),
    "task_blocked": ("", "project tags metadata_match limit offset"),
    "task_children": ("task_id", "recursive include_closed offset"),
    "task_edge_upsert": ("from_task_id to_task_id type agent", "metadata"),
    "task_edge_list": ("task_id", "direction types offset"),
    "task_spawn": ("source_task_id title agent",
        "description relation_type inherit_project inherit_tags inherit_context metadata request_id",
    ),
    "task_next": ("agent", "aspect ttl_minutes project tags metadata_match task_id"),
}  # fmt: skip
DEFAULTS = {
    "task_next": {"aspect": "work"},
    "task_create": {"task_type": "task"},
    "task_list": {"with_claims": False},
    "task_ready": {"limit": 50, "with_claims": True},
    "task_blocked": {"limit": 50},
    "task_children": {"recursive": False, "include_closed": False},
    "task_edge_list": {"direction": "both"},
    "task_spawn": {
        "relation_type": "discovered_from", "inherit_project": True, "inherit_tags": True,
        "inherit_context": True,
    },
}  # fmt: skip


async def test_parameters_and_defaults_match_the_specification(tmp_path: Path) -> None:
    """behaviour 172"""
    async with serving(tmp_path, server={"tools": "full"}, settled=False) as lithos:
        schemas = {spec.name: spec.input_schema for spec in lithos.server.tools.listed()}
        for name, (required, _) in TOOLS.items():
            given = dict.fromkeys(required.split(), MISSING_ID)
            assert isinstance(await lithos.call(f"lithos_{name}", **given), dict)
    for name, (required, optional) in TOOLS.items():
        schema = schemas[f"lithos_{name}"]
        assert list(schema["properties"]) == [*required.split(), *optional.split()], name
        assert schema.get("required", []) == required.split()
        assert schema["additionalProperties"] is False
        assert all(parameter["description"] for parameter in schema["properties"].values())
        defaults = {key: part["default"] for key, part in schema["properties"].items() if "default" in part}
        assert defaults == DEFAULTS.get(name, {})


async def test_wrong_and_unknown_arguments_are_protocol_errors(lithos: Lithos) -> None:
    """behaviour 173"""
    for name, (required, _) in TOOLS.items():
        given = dict.fromkeys(required.split(), "x")
        with pytest.raises(ArgumentFault, match="bogus"):
            await lithos.call(f"lithos_{name}", **given, bogus=1)
        for missing in required.split():
            others = {key: value for key, value in given.items() if key != missing}
            with pytest.raises(ArgumentFault, match=f"'{missing}'"):
                await lithos.call(f"lithos_{name}", **others)
            answer = await lithos.call(f"lithos_{name}", **others | {missing: " \t"})
            assert missing in refusal(answer, "invalid_input")
    for name, arguments, named in (
        ("task_create", {"title": "T", "agent": "a", "depends_on": "x,y"}, "depends_on"),
        ("task_create", {"title": "T", "agent": "a", "metadata": []}, "metadata"),
        ("task_claim", {"task_id": "t", "aspect": "x", "agent": "a", "ttl_minutes": "long"}, "ttl_minutes"),
        ("task_list", {"with_claims": "perhaps"}, "with_claims"),
        ("task_ready", {"limit": 1.5}, "limit"),
        ("task_edge_list", {"task_id": "t", "types": "blocks,x"}, "types"),
    ):
        with pytest.raises(ArgumentFault, match=f"'{named}'"):
            await lithos.call(f"lithos_{name}", **arguments)
    assert await lithos.call("lithos_task_list") == {"tasks": [], "total": 0}
