"""Relating two tasks: the checks in their order, then the edge (coordination spec, section 3)."""

from __future__ import annotations

from lithos.core.errors import Cycle, InvalidEdgeType, NotAGate, ParentExists, SelfEdge, TaskNotFound
from lithos.core.task_graph import find_path
from lithos.core.tasks import BLOCKING_TYPES, EDGE_TYPES, PARENT_CHILD, WAITS_ON_GATE, TaskEdge
from lithos.stores.tasks import TaskRows


def link_tasks(rows: TaskRows, edge: TaskEdge) -> None:
    """Add an edge, or replace the metadata of an existing one; raises the refusal that applies first."""
    if edge.type not in EDGE_TYPES:
        raise InvalidEdgeType(f"type must be one of {', '.join(EDGE_TYPES)}; not {edge.type!r}.")
    if edge.source == edge.target:
        raise SelfEdge("A task cannot be linked to itself. Name two different tasks.")
    for task_id in (edge.source, edge.target):
        if rows.task(task_id) is None:
            raise TaskNotFound(f"There is no task {task_id!r}. Find tasks with lithos_task_list.")
    _check_gate(rows, edge)
    _check_parent(rows, edge)
    _check_cycle(rows, edge)
    rows.put_edge(edge)


def _check_gate(rows: TaskRows, edge: TaskEdge) -> None:
    source = rows.task(edge.source)
    if edge.type == WAITS_ON_GATE and source is not None and source.task_type != "gate":
        raise NotAGate(
            f"The task {source.title!r} is no gate. Use type blocks, or create a task of type gate."
        )


def _check_parent(rows: TaskRows, edge: TaskEdge) -> None:
    if edge.type != PARENT_CHILD:
        return
    for known in rows.edges_to(edge.target, (PARENT_CHILD,)):
        if known.source != edge.source:
            raise ParentExists(f"The task {edge.target} already has the parent {known.source}.")


def _check_cycle(rows: TaskRows, edge: TaskEdge) -> None:
    """Blocking edges of both types share one rule, parents have their own; others never wait."""
    if edge.type in BLOCKING_TYPES:
        types: tuple[str, ...] = BLOCKING_TYPES
    elif edge.type == PARENT_CHILD:
        types = (PARENT_CHILD,)
    else:
        return
    path = find_path(edge.target, edge.source, lambda task_id: rows.successors(task_id, types))
    if path is not None:
        raise Cycle(f"The edge would close a cycle: {' -> '.join([*path, edge.target])}.")
