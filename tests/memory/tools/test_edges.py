"""Typed edges and conflicts, through their tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw
import attrs
import pytest
import trio

from lithos.events.journal.coordinator import Coordinator
from lithos.memory.rows.edges import EdgeStore
from lithos.server.tools.arguments import ArgumentFault
from tests.servers import MISSING_ID, Clock, Lithos, put_note, refusal, serving

ROW = [
    "edge_id", "id", "from_id", "to_id", "type", "weight", "namespace", "created_at", "updated_at",
    "provenance_actor", "provenance_type", "evidence", "conflict_state",
]  # fmt: skip
RESOLUTIONS = ("accepted_dual", "superseded", "refuted", "merged")
WINNER, LOSER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
BODY = b"\r\n# Odd  \r\n\r\n  text\t\r\n\xe2\x80\x8b"
ODD = b"---\r\n# by hand\r\nid: " + WINNER.encode() + b"\r\ntitle: Odd\r\nversion: 3\r\n---" + BODY


async def upsert(lithos: Lithos, /, **fields: Any) -> Any:
    """Call the upsert tool. Return its answer, which may be a refusal.

    By default, the edge is a contradiction from a to b.
    """
    plain = {"from_id": "a", "to_id": "b", "type": "contradicts", "weight": 0.5, "namespace": "n"}
    return await lithos.call("lithos_edge_upsert", **plain | fields)


async def edge_id(lithos: Lithos, /, **fields: Any) -> str:
    answer = await upsert(lithos, **fields)
    assert (list(answer), answer["status"]) == (["status", "edge_id"], "ok"), answer
    return str(answer["edge_id"])


async def edges(lithos: Lithos, **filters: Any) -> list[dict[str, Any]]:
    answer = await lithos.call("lithos_edge_list", **filters)
    assert list(answer) == ["edges", "results", "total"]
    assert answer["edges"] == answer["results"]
    rows: list[dict[str, Any]] = answer["edges"]
    for row in rows:
        assert list(row) == ROW
        assert row["edge_id"] == row["id"]
    return rows


async def resolve(lithos: Lithos, /, **fields: Any) -> Any:
    return await lithos.call(
        "lithos_conflict_resolve", **{"resolution": "merged", "resolver": "bob"} | fields
    )


async def is_known(lithos: Lithos, agent: str) -> bool:
    return await lithos.call("lithos_agent_info", id=agent) is not None


async def test_edge_is_listed_with_the_given_values(tmp_path: Path) -> None:
    """behaviours 83, 84, 166"""
    clock = Clock()
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        evidence = {"why": ["é", {"n": 1.5}]}
        first = await edge_id(
            lithos, weight=2, provenance_actor="ann", provenance_type="asserted", evidence=evidence,
            conflict_state="open",
        )  # fmt: skip
        assert first.startswith("edge_")
        assert len(bytes.fromhex(first.removeprefix("edge_"))) == 6
        (row,) = await edges(lithos)
        assert json.loads(row.pop("evidence")) == evidence
        assert row == {
            "edge_id": first, "id": first, "from_id": "a", "to_id": "b", "type": "contradicts", "weight": 2.0,
            "namespace": "n", "created_at": clock.text, "updated_at": clock.text, "provenance_actor": "ann",
            "provenance_type": "asserted", "conflict_state": "open",
        }  # fmt: skip
        created = clock.text
        clock.advance(seconds=1)
        assert await edge_id(lithos, weight="-1", evidence=[]) == first
        (row,) = await edges(lithos)
        assert row == {
            "edge_id": first, "id": first, "from_id": "a", "to_id": "b", "type": "contradicts",
            "weight": -1.0, "namespace": "n", "created_at": created, "updated_at": clock.text,
            "provenance_actor": None,
            "provenance_type": None, "evidence": "[]", "conflict_state": None,
        }  # fmt: skip
        payload = {key: row[key] for key in ("edge_id", "from_id", "to_id", "type", "namespace")}
        assert lithos.events() == [
            ("edge.upserted", payload | {"conflict_state": "open"}),
            ("edge.upserted", payload | {"conflict_state": None}),
        ]
    async with serving(tmp_path, settled=False) as lithos:
        assert await edges(lithos) == [row]
        assert lithos.events() == []


async def test_listed_edges_match_all_filters_and_start_with_oldest(lithos: Lithos, clock: Clock) -> None:
    """behaviour 166"""
    assert await edges(lithos) == []
    given = [("a", "b", "x", "n"), ("b", "a", "x", "n"), ("a", "c", "y", "n"), ("a", "b", "x", "m")]
    ids = [
        await edge_id(lithos, from_id=source, to_id=target, type=kind, namespace=space)
        for source, target, kind, space in given
    ]
    await edge_id(lithos, type="x", weight=1)  # the first edge keeps its position when it is written again
    for filters, expected in [
        ({}, [0, 1, 2, 3]),
        ({"from_id": "a"}, [0, 2, 3]),
        ({"to_id": "b"}, [0, 3]),
        ({"type": "x", "namespace": "n"}, [0, 1]),
        ({"from_id": "a", "to_id": "b", "type": "x", "namespace": "m"}, [3]),
        ({"from_id": "a", "type": "z"}, []),
    ]:
        assert [row["id"] for row in await edges(lithos, **filters)] == [ids[n] for n in expected]


@pytest.mark.parametrize(
    "bad",
    [
        {"from_id": " "}, {"to_id": ""}, {"type": "\t"}, {"namespace": ""}, {"namespace": "  "},
        {"evidence": "text"}, {"evidence": 1}, {"evidence": True}, {"evidence": 0.5}, {"weight": "nan"},
        {"weight": float("inf")}, {"evidence": {"x": float("nan")}}, {"evidence": ["\ud800"]},
    ],
)  # fmt: skip
async def test_impossible_edge_is_refused_and_stores_nothing(lithos: Lithos, bad: Any) -> None:
    """behaviours 84, 173"""
    refusal(await upsert(lithos, **{"provenance_actor": "ann"} | bad), "invalid_input")
    assert await edges(lithos) == []
    assert lithos.events() == []
    assert not await is_known(lithos, "ann")


async def test_arguments_of_a_wrong_type_are_protocol_errors(lithos: Lithos) -> None:
    """behaviour 173"""
    for bad in ({"weight": "heavy"}, {"weight": None}, {"from_id": 1}, {"conflict_state": []}):
        with pytest.raises(ArgumentFault, match=next(iter(bad))):
            await upsert(lithos, **bad)


async def test_edge_actor_is_the_tool_by_default(lithos: Lithos) -> None:
    """behaviour 91"""
    await edge_id(lithos, provenance_actor="ann")
    assert await is_known(lithos, "ann")
    assert not await is_known(lithos, "lithos_edge_upsert")
    await edge_id(lithos)
    assert await is_known(lithos, "lithos_edge_upsert")
    agents = [event.draft.agent for event in lithos.server.get(Coordinator)._store.events_after(0)]
    assert agents == ["ann", "lithos_edge_upsert"]


@pytest.mark.parametrize("resolution", RESOLUTIONS)
async def test_each_resolution_is_recorded_and_announced(
    lithos: Lithos, clock: Clock, resolution: str
) -> None:
    """behaviour 85"""
    winner, loser = await lithos.create("Winner"), await lithos.create("Loser")
    edge = await edge_id(lithos, from_id=winner, to_id=loser, evidence=[1], provenance_type="asserted")
    (before,) = await edges(lithos)
    clock.advance(seconds=1)
    told = len(lithos.events())
    answer = await resolve(lithos, edge_id=edge, resolution=resolution, winner_id=winner)
    assert list(answer.items()) == [("status", "ok"), ("edge_id", edge), ("conflict_state", resolution)]
    changed = {"conflict_state": resolution, "provenance_actor": "bob", "updated_at": clock.text}
    assert await edges(lithos) == [before | changed]
    kind, payload = lithos.events()[told]
    assert (kind, payload["edge_id"], payload["conflict_state"]) == ("edge.upserted", edge, resolution)
    is_winner_changed = resolution == "superseded"
    assert await is_known(lithos, "bob") == is_winner_changed
    assert (await lithos.read(winner))["version"] == 1 + is_winner_changed
    assert (await lithos.read(loser))["version"] == 1


async def test_winner_note_supersedes_the_other_note_without_text_change(tmp_path: Path) -> None:
    """behaviours 85, 86"""
    file = put_note(tmp_path, "odd.md", ODD)
    async with serving(tmp_path) as lithos:
        edge = await edge_id(lithos, from_id=LOSER, to_id=WINNER)
        answer = await resolve(lithos, edge_id=edge, resolution="superseded", winner_id=WINNER)
        assert list(answer) == ["status", "edge_id", "conflict_state"]
        assert file.read_bytes().endswith(b"\r\n---" + BODY)
        assert file.read_bytes().startswith(b"---\r\n# by hand\r\n")
        note = await lithos.read(WINNER)
        assert (note["version"], note["metadata"]["supersedes"]) == (4, LOSER)
        assert note["metadata"]["contributors"] == ["bob"]
        kinds = [kind for kind, _ in lithos.events()]
        assert kinds == ["edge.upserted", "edge.upserted", "note.updated"]
        assert lithos.events()[-1][1] == {"id": WINNER, "title": "Odd", "path": "odd.md"}
    async with serving(tmp_path) as lithos:
        assert (await lithos.read(WINNER))["metadata"]["supersedes"] == LOSER
        assert lithos.events() == []


async def test_missing_winner_note_causes_a_warning(lithos: Lithos) -> None:
    """behaviour 86"""
    edge = await edge_id(lithos, from_id=MISSING_ID)
    answer = await resolve(lithos, edge_id=edge, resolution="superseded", winner_id=MISSING_ID)
    assert list(answer) == ["status", "edge_id", "conflict_state", "warnings"]
    (warning,) = answer["warnings"]
    assert MISSING_ID in warning
    assert [row["conflict_state"] for row in await edges(lithos)] == ["superseded"]
    assert not await is_known(lithos, "bob")


async def test_edge_checks_run_in_the_specified_order(lithos: Lithos) -> None:
    """behaviour 85"""
    note = await lithos.create("A")
    plain, conflict = await edge_id(lithos, type="supports"), await edge_id(lithos, from_id=note)
    before, events = await edges(lithos), lithos.events()
    wrong: dict[str, Any] = {"edge_id": "edge_none", "resolution": "lost"}
    assert "'lost'" in refusal(await resolve(lithos, **wrong), "invalid_input")
    wrong["resolution"] = "superseded"
    assert "edge_none" in refusal(await resolve(lithos, **wrong), "not_found")
    wrong["edge_id"] = plain
    message = refusal(await resolve(lithos, **wrong), "invalid_input")
    assert "contradicts" in message
    assert "winner_id" not in message
    wrong["edge_id"] = conflict
    assert "winner_id" in refusal(await resolve(lithos, **wrong), "invalid_input")
    message = refusal(await resolve(lithos, **wrong, winner_id=MISSING_ID), "invalid_input")
    assert "winner_id" in message
    assert MISSING_ID in message
    for blank in ("edge_id", "resolution", "resolver"):
        refusal(await resolve(lithos, **{"edge_id": conflict} | {blank: " "}), "invalid_input")
    assert (await edges(lithos), lithos.events()) == (before, events)
    assert not await is_known(lithos, "bob")


async def test_note_is_unchanged_when_the_edge_cannot_be_updated(
    lithos: Lithos, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 85"""

    def refuse(*_: Any) -> None:
        raise apsw.FullError("database or disk is full")

    note = await lithos.create("A")
    edge = await edge_id(lithos, from_id=note)
    before, events = await edges(lithos), lithos.events()
    with monkeypatch.context() as patch:
        patch.setattr(EdgeStore, "transaction", refuse)
        answer = await resolve(lithos, edge_id=edge, resolution="superseded", winner_id=note)
        assert "disk is full" in refusal(answer, "update_failed")
        assert "Nothing was changed" in refusal(await upsert(lithos, from_id="new"), "internal_error")
    assert (await lithos.read(note))["version"] == 1
    assert (await edges(lithos), lithos.events()) == (before, events)
    answer = await resolve(lithos, edge_id=edge, resolution="superseded", winner_id=note)
    assert answer["status"] == "ok"


async def test_unwritable_winner_is_reported_and_the_call_may_be_repeated(lithos: Lithos) -> None:
    """behaviour 86"""
    note = await lithos.create("A")
    edge = await edge_id(lithos, from_id=note)
    file = lithos.knowledge / "a.md"
    whole = file.read_bytes()
    file.write_bytes(b"---\nid: [\n---\n")
    request = {"edge_id": edge, "resolution": "superseded", "winner_id": note}
    message = refusal(await resolve(lithos, **request), "internal_error")
    assert message.startswith("The edge is resolved, but")
    file.write_bytes(whole)
    assert (await resolve(lithos, **request))["status"] == "ok"
    assert (await lithos.read(note))["metadata"]["supersedes"] == "b"


async def test_concurrent_upserts_create_one_edge_and_one_event_each(lithos: Lithos) -> None:
    """behaviour 83"""
    found: list[str] = []

    async def one(number: int) -> None:
        found.append(await edge_id(lithos, weight=number))

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(one, number)
    (row,) = await edges(lithos)
    assert set(found) == {row["id"]}
    assert [kind for kind, _ in lithos.events()] == ["edge.upserted"] * 20


async def test_damaged_edge_file_is_set_aside_and_server_starts(tmp_path: Path) -> None:
    """behaviour 89"""
    (tmp_path / ".lithos").mkdir()
    (tmp_path / ".lithos" / "edges.db").write_bytes(b"broken" * 1000)
    async with serving(tmp_path, settled=False) as lithos:
        await edge_id(lithos)
        assert len(await edges(lithos)) == 1
        (moved,) = (tmp_path / ".lithos").glob("edges.db.corrupt-*")
        assert moved.read_bytes() == b"broken" * 1000


async def test_startup_announces_outbox_edges_before_scan_results(tmp_path: Path) -> None:
    async with serving(tmp_path, settled=False) as lithos:
        await lithos.create("A")
        edge = await edge_id(lithos)
        told = lithos.server.get(Coordinator)._store.events_after(0)[-1].draft
    store = EdgeStore.open(tmp_path / ".lithos" / "edges.db", told.timestamp)
    with store.transaction():
        store.add_to_outbox([told, attrs.evolve(told, origin="tool:of-a-change-before-a-kill")])
    store.close()
    put_note(tmp_path, "b.md", "# B")
    async with serving(tmp_path, settled=False) as lithos:
        (*_, first, second) = [event.draft for event in lithos.server.get(Coordinator)._store.events_after(0)]
        assert (first.type, first.payload["edge_id"], first.origin) == (
            "edge.upserted", edge, "tool:of-a-change-before-a-kill",
        )  # fmt: skip
        assert (second.type, second.agent) == ("note.created", "scan")
        assert lithos.server.get(Coordinator)._store.event_count() == 4


async def test_edge_tools_are_listed_after_search_with_their_parameters(tmp_path: Path) -> None:
    """behaviours 171, 172"""
    async with serving(tmp_path, server={"tools": "full"}, settled=False) as lithos:
        listed = {spec.name: spec for spec in lithos.server.tools.listed()}
    names = ["lithos_edge_upsert", "lithos_edge_list", "lithos_conflict_resolve", "lithos_cache_lookup"]
    start = list(listed).index(names[0])
    assert list(listed)[start : start + 4] == names
    hints = {
        name: (listed[name].read_only, listed[name].destructive, listed[name].idempotent)
        for name in names[:3]
    }
    assert list(hints.values()) == [(False, False, True), (True, False, True), (False, False, False)]
    assert {name: " ".join(listed[name].input_schema["properties"]) for name in names[:3]} == {
        "lithos_edge_upsert": "from_id to_id type weight namespace provenance_actor provenance_type evidence "
        "conflict_state",
        "lithos_edge_list": "from_id to_id type namespace offset",
        "lithos_conflict_resolve": "edge_id resolution resolver winner_id",
    }
    assert listed["lithos_conflict_resolve"].input_schema["required"] == ["edge_id", "resolution", "resolver"]
    assert len(listed["lithos_edge_upsert"].input_schema["required"]) == 5
