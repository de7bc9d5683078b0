"""The calls of `bench.golden`: normal uses of every tool, then invalid values for each argument."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from attrs import define, field

Answer = Mapping[str, Any]
#: Function that calls a tool and returns its JSON object.
Ask = Callable[[str, dict[str, Any]], Awaitable[Answer]]
NOWHERE: Final = "00000000-0000-4000-8000-000000000000"
#: Unusual values for an argument, by its type.
_ODD: Final[Mapping[str, Sequence[Any]]] = {
    "string": (" ", 7, "no such thing"),
    "integer": (-1, 10**9, "x"),
    "number": (-1, 10**9, "x"),
    "boolean": (True, "x"),
    "array": ([" "], "x", ["no such thing"]),
    "object": ({"key": "value"}, "x"),
}
_QUERIES: Final = ("blockchain", "proof of work", "how to run a node", "tag:kb", "“”", "zzzz", "who is andy?")


@define
class Script:
    """The calls to one server, which serves the notes of the vault."""

    ask: Ask
    #: The arguments that each tool accepted last, by tool.
    accepted: dict[str, dict[str, Any]] = field(factory=dict)

    async def call(self, tool: str, /, **arguments: Any) -> Answer:
        """Call a tool. If the arguments are accepted, calls with unusual values are based on them."""
        name = f"lithos_{tool}"
        answer = await self.ask(name, arguments)
        if answer.get("status") != "error" or name not in self.accepted:
            self.accepted[name] = arguments
        return answer

    async def run(self) -> None:
        """Call every tool in the normal way."""
        listed = await self.call("list", path_prefix="what/", limit=100)
        notes = [(row["id"], row["path"]) for row in listed["items"]]
        await self._read(notes)
        await self._search(notes)
        await self._write(notes)
        await self._agents()
        await self._tasks(notes)
        await self._learn(notes)

    async def run_odd(self, tools: Sequence[Mapping[str, Any]]) -> None:
        """Call the tools with each choice and odd value of every argument.

        Also call them without the argument.
        """
        for tool in tools:
            name, properties = tool["name"], tool["inputSchema"]["properties"]
            base = {key: value for key, value in self.accepted[name].items() if key != "expected_version"}
            await self.ask(name, {})
            await self.ask(name, base)
            await self.ask(name, base | {"unheard_of": 1})
            for key, schema in properties.items():
                kinds = [each["type"] for each in schema.get("anyOf", [schema])]
                values = (*schema.get("enum", ()), *(value for kind in kinds for value in _ODD[kind]))
                for value in values:
                    await self.ask(name, base | {key: value})
                if key in base:
                    await self.ask(name, {each: base[each] for each in base if each != key})

    async def _read(self, notes: Sequence[tuple[str, str]]) -> None:
        call = self.call
        filters: dict[str, Any]
        for note_id, path in notes[:4]:
            await call("read", id=note_id)
            await call("read", path=path, agent_id="ann")
        note_id, path = notes[5]
        await call("read", id=note_id, max_length=80, offset=40)
        await call("read", id=note_id, outline=True)
        await call("read", path="how/run-solana-node.md", outline=True)
        await call("read", path=path.removesuffix(".md"))
        await call("read", title="Blockchain")
        await call("read", id=note_id, section="No such section")
        await call("read", id=note_id, version=1)
        await call("read", id=NOWHERE)
        await call("read", id=note_id, path=path)
        await call("read", path="../etc/passwd")
        for filters in (
            {}, {"limit": 3}, {"limit": 3, "offset": 3}, {"offset": 1000}, {"tags": ["BaseTech"]},
            {"title_contains": "proof"}, {"content_query": "consensus"}, {"since": "2026-01-01T00:00:00Z"},
            {"author": "ann"}, {"metadata_match": {"a": 1}}, {"path_prefix": "who/", "limit": 5},
            {"since": "yesterday"}, {"entities": ["Bitcoin"]},
        ):  # fmt: skip
            await call("list", **filters)
        for include in (["links"], ["provenance"], ["edges"], ["links", "provenance", "edges"]):
            await call("related", id=note_id, include=include, depth=2)
        for depth in (1, 2, 3):
            await call("links", path="what/blockchain.md", direction="both", depth=depth)
            await call("related", path="what/blockchain.md", depth=depth)
        for direction in ("outgoing", "incoming"):
            await call("links", path="what/blockchain.md", direction=direction)
        await call("tags")
        await call("tags", prefix="B")
        await call("stats")

    async def _search(self, notes: Sequence[tuple[str, str]]) -> None:
        call = self.call
        filters: dict[str, Any]
        for query in _QUERIES:
            for mode in ("hybrid", "fulltext", "semantic", "graph"):
                await call("search", query=query, mode=mode, limit=5)
            await call("semantic", query=query, limit=4)
            await call("cache_lookup", query=query, limit=2, max_length=300)
            await call("retrieve", query=query, limit=4, agent_id="ann")
            await call("context", query=query, budget=600, agent_id="ann")
        seeds = [note_id for note_id, _ in notes[:2]]
        for filters in (
            {"path_prefix": "who/"}, {"tags": ["BaseTech"]}, {"author": "ann"}, {"threshold": 0.3},
            {"offset": 3},
            {"entities": ["Bitcoin"]}, {"mode": "graph", "seed_ids": seeds, "graph_depth": 1}, {"limit": 50},
        ):  # fmt: skip
            await call("search", query="interlock", **filters)
        for filters in (
            {"namespace_filter": ["what"]}, {"max_context_nodes": 2}, {"surface_conflicts": True},
            {"path_prefix": "how/"}, {"tags": ["Legal"]}, {"offset": 2},
        ):  # fmt: skip
            await call("retrieve", query="interlock browser", **filters)
        first = await call("context", query="staking", budget=300, sections=["notes"])
        await call("context", query="staking", since=first.get("cursor", "0"))
        await call("context", budget=1000)
        await call("semantic", query="staking", threshold=0.4, tags=["kb"])
        await call("cache_lookup", query="staking", min_confidence=0.0, max_age_hours=1)

    async def _write(self, notes: Sequence[tuple[str, str]]) -> None:
        call = self.call
        more: dict[str, Any]
        made = await call(
            "write", agent="ann", title="Golden note", path="golden", tags=["gold", "kb"], confidence=0.7,
            content="# Golden note\n\nSee [[Blockchain]] and [staking](../what/staking.md).\n\n- [ ] Weigh it"
            "\n- [x] Find it\n\n## History\n\nBitcoin was first.\n",
            source_url="https://example.org/gold", metadata={"carat": 24}, note_type="concept",
            summaries={"short": "Gold."}, derived_from_ids=[notes[0][0]],
        )  # fmt: skip
        note = made.get("id", NOWHERE)
        await call("write", agent="bob", title="Golden note", path="golden", content="Again.")
        gold = "https://example.org/gold"
        await call("write", agent="bob", title="Golden url", content="Url.", source_url=gold)
        other = await call(
            "write", agent="bob", title="Silver note", content="Silver tarnishes.", ttl_hours=5
        )
        await call("write", agent="bob", title="Diary", content="Mine.", access_scope="agent_private")
        await call("write", agent="ann", id=note, content="Shorter.", expected_version=9)
        await call("write", agent="ann", id=note, content="Shorter.", expected_version=9, on_conflict="merge")
        await call("write", agent="ann", id=note, title="Golden note", expected_version=1, content=(
            "# Golden note\n\nSee [[Blockchain]].\n\n- [ ] Weigh it\n- [x] Find it\n\n## History\n\nGold.\n"
        ))  # fmt: skip
        await call("provenance", id=note)
        await call("provenance", id=notes[0][0], direction="derived", depth=2)
        for op, more in (
            ("append", {"text": "The end."}), ("prepend", {"text": "The beginning."}),
            ("append", {"section": "History", "text": "Then silver."}),
            ("replace", {"section": "History", "text": "All of it."}),
            ("insert_before", {"section": "History", "text": "## Before\n\nEarlier."}),
            ("insert_after", {"section": "History", "text": "## After\n\nLater."}),
            ("find_replace", {"find": "Later", "text": "Much later"}), ("check", {"find": "Weigh it"}),
            ("uncheck", {"find": "Find it"}), ("remove", {"section": "Before"}),
            ("append", {"text": "x", "expected_version": 1}),
            ("find_replace", {"find": "nowhere", "text": "x"}),
        ):  # fmt: skip
            await call("note_edit", id=note, agent="bob", op=op, **more)
        await call("note_edit", path=notes[1][1], agent="bob", op="append", text="Edited by an agent.")
        archived = {"tags": ["gold"], "status": "archived", "metadata": {"carat": 18}}
        await call("note_update", id=note, agent="ann", **archived)
        await call("note_update", path=notes[2][1], agent="ann", tags=["seen"])
        await call("note_update", id=note, agent="ann", status="active", expected_version=2)
        for more in ({}, {"limit": 2}, {"limit": 2, "before": 4}, {"diff": "1..3"}, {"diff": "2"},
                     {"changed_by": "bob"}):  # fmt: skip
            await call("history", id=note, **more)
        await call("restore", id=note, version=2, agent="bob")
        await call("restore", id=note, version=99, agent="bob")
        await call("note_move", id=notes[3][0], path="golden/moved.md", agent="ann")
        await call("note_move", from_path=notes[4][1], path=notes[5][1], agent="ann")
        await call("note_move", id=note, path="golden/renamed", agent="ann", update_links=False)
        await call("delete", id=other.get("id", NOWHERE), agent="bob")
        await call("delete", path=notes[6][1], agent="bob")
        await call("history", deleted=True)
        await call("restore", id=notes[6][0], version=1, agent="ann")
        await call("impact", id=notes[0][0])
        await call("impact", id=notes[0][0], action="quarantine", agent="ann", reason="Old.", open_tasks=True)
        await call("search", query="golden", limit=3)
        await call("impact", id=notes[0][0], action="clear", agent="ann")
        await call("read", id=note, agent_id="ann")
        await call("read", id=note, section="History")
        await call("proposals")
        await call("proposals", status="approved", proposed_by="ann")
        await call("proposal_withdraw", agent="ann", id=NOWHERE)

    async def _agents(self) -> None:
        call = self.call
        await call("agent_register", id="ann", name="Ann", type="claude-code", metadata={"team": "a"})
        await call("agent_register", id="bob")
        await call("agent_info", id="ann")
        await call("agent_info", id="nobody")
        await call("agent_list")
        await call("agent_list", type="claude-code", active_since="2026-03-02T00:00:00Z")

    async def _tasks(self, notes: Sequence[tuple[str, str]]) -> None:
        call = self.call
        more: dict[str, Any]

        async def make(title: str, **more: Any) -> str:
            return str((await call("task_create", title=title, agent="ann", **more)).get("task_id", NOWHERE))

        epic = await make("Chains", task_type="epic", tags=["kb"], metadata={"project": "p"})
        first = await make("Read", parent_task_id=epic, description="All of it.", metadata={"project": "p"})
        second = await make("Explain", depends_on=[first], metadata={"project": "p"}, tags=["kb"])
        gate = await make("Approve", task_type="gate", metadata={"gate_type": "human"})
        loose = await make("Loose end")
        await call("task_edge_upsert", from_task_id=gate, to_task_id=loose, type="waits_on_gate", agent="ann")
        await call("task_edge_upsert", from_task_id=second, to_task_id=first, type="blocks", agent="ann")
        await call("task_update", task_id=first, agent="bob", description="Chapter 5.", tags=["x"])
        claim = await call("task_claim", task_id=first, aspect="reading", agent="bob", ttl_minutes=30)
        await call("task_claim", task_id=first, aspect="reading", agent="ann")
        await call("task_renew", task_id=first, aspect="reading", agent="bob", ttl_minutes=60)
        await call("task_renew", task_id=first, aspect="reading", agent="bob", fence=1)
        await call("finding_post", task_id=first, agent="bob", summary="Found.", knowledge_id=notes[0][0])
        await call("finding_post", task_id=first, agent="bob", summary="More.", fence=claim.get("fence"))
        await call("finding_list", task_id=first)
        for more in ({}, {"status": "open"}, {"with_claims": True}, {"tags": ["kb"]}, {"task_type": "epic"},
                     {"created_by": "ann"}, {"metadata_match": {"project": "p"}}, {"offset": 2}):  # fmt: skip
            await call("task_list", **more)
        for more in ({}, {"project": "p"}, {"limit": 1}, {"with_claims": False}):
            await call("task_ready", **more)
        for more in ({}, {"project": "p"}, {"limit": 1}):
            await call("task_blocked", **more)
        await call("task_status", task_id=first)
        await call("task_status")
        await call("task_get", task_id=second)
        await call("task_children", task_id=epic, recursive=True, include_closed=True)
        await call("task_edge_list", task_id=second, direction="incoming")
        await call("task_spawn", source_task_id=first, title="Draw", agent="bob")
        await call("task_next", agent="eve", project="p")
        await call("task_next", agent="eve", task_id=loose)
        receipt = await call("retrieve", query="proof of stake", task_id=first, agent_id="bob")
        await call("task_release", task_id=first, aspect="reading", agent="bob")
        ids = [row["id"] for row in receipt.get("results", ())]
        await call("task_complete", task_id=first, agent="bob", outcome="Read.", cited_nodes=ids[:1],
                   misleading_nodes=ids[1:2], receipt_id=receipt.get("receipt_id"))  # fmt: skip
        await call("task_complete", task_id=first, agent="bob")
        await call("task_reopen", task_id=first, agent="ann")
        await call("task_cancel", task_id=loose, agent="ann", reason="Not needed.")
        await call("context", task_id=second, query="chains", budget=800)
        await call("task_get", task_id=NOWHERE)

    async def _learn(self, notes: Sequence[tuple[str, str]]) -> None:
        call = self.call
        edge = await call("edge_upsert", from_id=notes[0][0], to_id=notes[2][0], type="contradicts",
                          weight=0.8, namespace="what", provenance_actor="ann",
                          evidence={"why": "both"})  # fmt: skip
        other = {"from_id": notes[0][0], "to_id": notes[3][0], "type": "supports"}
        await call("edge_upsert", **other, weight=2, namespace="x")
        await call("edge_list")
        await call("edge_list", from_id=notes[0][0], type="contradicts", namespace="what")
        await call("retrieve", query="adversarial advertising", surface_conflicts=True)
        resolve = {"edge_id": edge.get("edge_id", "edge_0"), "resolver": "ann", "winner_id": notes[2][0]}
        await call("conflict_resolve", resolution="superseded", **resolve)
        await call("node_stats", node_id=notes[0][0])
        await call("node_stats", path="what/blockchain.md")
        await call("node_stats", node_id=NOWHERE)
