"""Every key with its default (specification: cli-config, section 4; memory, sections 1 and 7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lithos.config.catalogue import SETTINGS, Config

DEFAULTS: dict[str, Any] = {
    "server.transport": "stdio",
    "server.host": "127.0.0.1",
    "server.port": 8765,
    "server.watch_files": True,
    "server.tools": "standard",
    "server.legacy_tools": False,
    "server.write_outcomes": "envelope",
    "server.max_answer_chars": 40_000,
    "server.answers": "compact",
    "server.auth_token": None,
    "server.allowed_hosts": (),
    "server.allowed_origins": (),
    "server.public_url": None,
    "server.oauth.issuer": None,
    "server.oauth.audience": None,
    "server.oauth.rights_claim": "scope",
    "server.oauth.rights": {"read": "read", "write": "write", "admin": "admin"},
    "server.console": True,
    "server.console_agent": "person",
    "storage.data_dir": Path("./data"),
    "storage.knowledge_subdir": "knowledge",
    "storage.vault": None,
    "storage.lock": True,
    "storage.ignore": None,
    "storage.protected": (),
    "storage.conflict_copies": "ask",
    "storage.max_content_size_bytes": 1000000,
    "search.embedding_model": "builtin",
    "search.semantic_threshold": None,
    "search.cache_confidence": None,
    "search.max_results": 50,
    "search.fusion": "blend",
    "search.semantic_weight": None,
    "search.tier": "auto",
    "search.accurate_threads": 1,
    "search.lead_weight": 0.5,
    "search.chunk_size": 500,
    "index.rebuild_on_start": False,
    "index.watch_debounce_ms": 500,
    "index.watch_mode": "auto",
    "coordination.claim_default_ttl_minutes": 60,
    "coordination.claim_max_ttl_minutes": 480,
    "coordination.strict": False,
    "coordination.max_attempts": 3,
    "coordination.retry_minutes": 1,
    "proposals.days": 30,
    "care.days": 180,
    "attachments.enabled": None,
    "agents": {},
    "history.enabled": True,
    "history.keep_days": 365,
    "history.keep_versions": 200,
    "history.keep_deleted_days": 365,
    "events.journal_size": 100000,
    "events.audit_days": 90,
    "events.audit_rows": 1_000_000,
    "events.event_buffer_size": 500,
    "events.subscriber_queue_size": 100,
    "events.max_sse_clients": 50,
    "events.max_ws_clients": 50,
    "lcma.enabled": True,
    "lcma.enrich_drain_interval_minutes": 5,
    "lcma.sweep_startup_delay_minutes": 10,
    "lcma.sweep_interval_hours": 24,
    "lcma.receipts_kept": 100000,
    "lcma.questions_kept": 100_000,
    "lcma.write_entities": False,
}  # fmt: skip


def value_of(config: Config, key: str) -> Any:
    value: Any = config
    for part in key.split("."):
        value = getattr(value, part)
    return value


def test_the_settings_are_exactly_those_of_the_specification() -> None:
    assert set(SETTINGS) == set(DEFAULTS)
    assert {key: value_of(Config(), key) for key in DEFAULTS} == DEFAULTS


def test_every_setting_is_described_in_one_line() -> None:
    def is_described(text: str) -> bool:
        return text.endswith(".") and "\n" not in text and (text[0].isupper() or text[0] == "`")

    bad = [key for key, each in SETTINGS.items() if not (is_described(each.description) and each.allowed)]
    assert bad == []


def test_the_secrets_are_marked() -> None:
    secret = {key for key, setting in SETTINGS.items() if setting.secret}
    assert secret == {"server.auth_token"}


def test_variables_are_named_by_section_and_key() -> None:
    assert SETTINGS["server.oauth.issuer"].variable == "LITHOS_SERVER__OAUTH__ISSUER"
