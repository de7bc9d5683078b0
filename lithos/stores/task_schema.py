"""The tables of tasks and what belongs to them, and their indexes (coordination spec, section 1).

Apart, because an older file gets its missing columns before an index may name them.
"""

from __future__ import annotations

from typing import Final

TASK_TABLES: Final = """
CREATE TABLE IF NOT EXISTS tasks(
    id TEXT PRIMARY KEY, title TEXT NOT NULL, description TEXT, status TEXT NOT NULL DEFAULT 'open',
    task_type TEXT NOT NULL DEFAULT 'task', created_by TEXT NOT NULL, created_at TEXT NOT NULL,
    tags TEXT NOT NULL DEFAULT '[]', outcome TEXT, resolved_at TEXT, metadata TEXT NOT NULL DEFAULT '{}');
CREATE TABLE IF NOT EXISTS claims(
    id INTEGER PRIMARY KEY, task_id TEXT NOT NULL, agent TEXT NOT NULL, aspect TEXT NOT NULL,
    claimed_at TEXT NOT NULL, expires_at TEXT NOT NULL, fence INTEGER NOT NULL DEFAULT 0,
    UNIQUE(task_id, aspect));
CREATE TABLE IF NOT EXISTS findings(
    id TEXT PRIMARY KEY, task_id TEXT NOT NULL, agent TEXT NOT NULL, summary TEXT NOT NULL,
    knowledge_id TEXT, created_at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS task_edges(
    id INTEGER PRIMARY KEY, from_task_id TEXT NOT NULL, to_task_id TEXT NOT NULL, type TEXT NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}', created_by TEXT NOT NULL, created_at TEXT NOT NULL,
    UNIQUE(from_task_id, to_task_id, type));
CREATE TABLE IF NOT EXISTS counters(name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS lessons(id TEXT PRIMARY KEY, lesson TEXT NOT NULL);
"""
TASK_INDEXES: Final = """
CREATE INDEX IF NOT EXISTS tasks_status ON tasks(status);
CREATE INDEX IF NOT EXISTS claims_task ON claims(task_id);
CREATE INDEX IF NOT EXISTS claims_expiry ON claims(expires_at);
CREATE INDEX IF NOT EXISTS findings_task ON findings(task_id);
CREATE INDEX IF NOT EXISTS task_edges_from ON task_edges(from_task_id, type);
CREATE INDEX IF NOT EXISTS task_edges_to ON task_edges(to_task_id, type);
"""
