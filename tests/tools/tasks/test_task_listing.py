"""The task tools as they are listed: profiles, hints, parameters, defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lithos.tools.contract.arguments import ArgumentFault
from tests.servers import MISSING_ID, Lithos, refusal, serving

#: Name: smallest profile, hints, required parameters, optional ones; in the order of the spec.
TOOLS = {
    "task_create": ("C", "", "title agent", "description tags metadata task_type depends_on parent_task_id"),
    "task_update": ("S", "I", "task_id agent", "title description tags metadata"),
    "task_claim": ("C", "", "task_id aspect agent", "ttl_minutes"),
    "task_renew": ("S", "", "task_id aspect agent", "ttl_minutes fence"),
    "task_release": ("S", "I", "task_id aspect agent", "fence"),
    "task_complete": ("C", "I", "task_id agent", "outcome cited_nodes misleading_nodes receipt_id fence"),
    "task_cancel": ("S", "I", "task_id agent", "reason"),
    "task_list": (
        "C", "RI", "", "agent status tags since resolved_since with_claims metadata_match task_type offset",
    ),
    "task_status": ("S", "RI", "", "task_id offset"),
    "finding_post": ("C", "", "task_id agent summary", "knowledge_id fence"),
    "finding_list": ("C", "RI", "task_id", "since offset"),
    "task_get": ("F", "RI", "task_id", ""),
    "task_reopen": ("F", "I", "task_id agent", ""),
    "task_ready": ("F", "RI", "", "project tags metadata_match limit with_claims offset"),
    "task_blocked": ("F", "RI", "", "project tags metadata_match limit offset"),
    "task_children": ("F", "RI", "task_id", "recursive include_closed offset"),
    "task_edge_upsert": ("F", "I", "from_task_id to_task_id type agent", "metadata"),
    "task_edge_list": ("F", "RI", "task_id", "direction types offset"),
    "task_spawn": (
        "F", "", "source_task_id title agent",
        "description relation_type inherit_project inherit_tags inherit_context metadata",
    ),
    "task_next": ("C", "", "agent", "aspect ttl_minutes project tags metadata_match task_id"),
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


@pytest.mark.parametrize("profile", ["core", "standard", "full"])
async def test_a_profile_lists_its_task_tools_in_order_and_all_can_be_called(
    tmp_path: Path, profile: Any
) -> None:
    """behaviours 171, 172"""
    shown = {"core": "C", "standard": "CS", "full": "CSF"}[profile]
    async with serving(tmp_path, server={"tools": profile}, settled=False) as lithos:
        names = [f"lithos_{name}" for name in TOOLS]
        listed = [spec for spec in lithos.server.tools.listed() if spec.name in names]
        assert [spec.name for spec in listed] == [
            f"lithos_{n}" for n, row in TOOLS.items() if row[0] in shown
        ]
        for spec in listed:
            hints = "R" * spec.read_only + "D" * spec.destructive + "I" * spec.idempotent
            assert (spec.name, hints) == (spec.name, TOOLS[spec.name.removeprefix("lithos_")][1])
        for name, (_, _, required, _) in TOOLS.items():
            given = dict.fromkeys(required.split(), MISSING_ID)
            assert isinstance(await lithos.call(f"lithos_{name}", **given), dict)


async def test_parameters_and_defaults_are_those_of_the_spec(tmp_path: Path) -> None:
    """behaviour 172"""
    async with serving(tmp_path, server={"tools": "full"}, settled=False) as lithos:
        schemas = {spec.name: spec.input_schema for spec in lithos.server.tools.listed()}
    for name, (_, _, required, optional) in TOOLS.items():
        schema = schemas[f"lithos_{name}"]
        assert list(schema["properties"]) == [*required.split(), *optional.split()], name
        assert schema.get("required", []) == required.split()
        assert schema["additionalProperties"] is False
        assert all(parameter["description"] for parameter in schema["properties"].values())
        defaults = {key: part["default"] for key, part in schema["properties"].items() if "default" in part}
        assert defaults == DEFAULTS.get(name, {})


async def test_wrong_and_unknown_arguments_are_protocol_faults(lithos: Lithos) -> None:
    """behaviour 173"""
    for name, (_, _, required, _) in TOOLS.items():
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
        ("task_create", {"title": "T", "agent": "a", "depends_on": "x"}, "depends_on"),
        ("task_create", {"title": "T", "agent": "a", "metadata": []}, "metadata"),
        (
            "task_claim",
            {"task_id": "t", "aspect": "x", "agent": "a", "ttl_minutes": "long"},
            "ttl_minutes",
        ),
        ("task_list", {"with_claims": "yes"}, "with_claims"),
        ("task_ready", {"limit": 1.5}, "limit"),
        ("task_edge_list", {"task_id": "t", "types": "blocks"}, "types"),
    ):
        with pytest.raises(ArgumentFault, match=f"'{named}'"):
            await lithos.call(f"lithos_{name}", **arguments)
    assert await lithos.call("lithos_task_list") == {"tasks": [], "total": 0}
