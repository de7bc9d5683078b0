"""The tables of `edges.db` and `stats.db` that can be imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import field, frozen

from lithos.events.model.imported_rows import Carried, CarriedTable, TableRow, carried_table
from lithos.memory.model.memory import LearningCommand

_EDGES: Final = carried_table(
    "edges",
    "edges.db",
    "edge_id= from_id:note= to_id:note= type= weight:number=1.0 namespace=default created_at:time= "
    "updated_at:time= provenance_actor provenance_type evidence conflict_state",
    unique="from_id to_id type namespace",
)
_NODE_STATS: Final = carried_table(
    "node_stats",
    "stats.db",
    "node_id:note= retrieval_count:whole=0 last_retrieved_at:time last_used_at:time "
    "ignored_count:whole=0 misleading_count:whole=0 cited_count:whole=0",
)
_RECEIPTS: Final = carried_table(
    "receipts",
    "stats.db",
    "id= ts:time= query= limit:whole=0 namespace_filter scouts_fired candidates_considered:whole=0 "
    "final_nodes conflicts_surfaced surface_conflicts:whole=0 temperature:number=0.0 "
    "terrace_reached:whole=0 agent_id task_id",
)
#: Tables that can be imported, in import order.
LEARNED: Final[Mapping[str, CarriedTable]] = {table.name: table for table in (_EDGES, _NODE_STATS, _RECEIPTS)}


@frozen(kw_only=True)
class CarryLearned(LearningCommand[Carried]):
    """Merge imported rows of one table of `edges.db` or `stats.db`. With `dry_run`, nothing is written."""

    agent: str
    table: str
    rows: tuple[TableRow, ...] = field(repr=False)
    dry_run: bool = False
