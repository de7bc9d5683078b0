"""Every key with its default (specification: cli-config, section 4; memory, sections 1 and 7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lithos.config.catalogue import SETTINGS, Config
from lithos.config.load import load_config
from lithos.config.sections import LcmaConfig
from lithos.config.sources import ConfigError
from lithos.core.notes.model import NOTE_TYPES

DEFAULTS: dict[str, Any] = {
    "server.transport": "stdio",
    "server.host": "127.0.0.1",
    "server.port": 8765,
    "server.watch_files": True,
    "server.tools": "standard",
    "server.legacy_tools": False,
    "server.write_outcomes": "envelope",
    "server.max_answer_chars": 40_000,
    "server.answers": "full",
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
    "storage.title_from": None,
    "storage.titles": None,
    "storage.inline_tags": None,
    "storage.broken_frontmatter": None,
    "storage.frontmatter": None,
    "storage.file_names": None,
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
    "search.chunk_max": 1000,
    "index.rebuild_on_start": False,
    "index.watch_debounce_ms": 500,
    "index.watch_mode": "auto",
    "index.max_vanished_fraction": 0.5,
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
    "events.enabled": True,
    "events.journal_size": 100000,
    "events.audit_days": 90,
    "events.audit_rows": 1_000_000,
    "events.event_buffer_size": 500,
    "events.subscriber_queue_size": 100,
    "events.sse_enabled": True,
    "events.max_sse_clients": 50,
    "events.ws_enabled": True,
    "events.max_ws_clients": 50,
    "telemetry.enabled": False,
    "telemetry.endpoint": None,
    "telemetry.console_fallback": False,
    "telemetry.service_name": "lithos",
    "telemetry.environment": None,
    "telemetry.export_interval_ms": 30000,
    "lcma.enabled": True,
    "lcma.enrich_drain_interval_minutes": 5,
    "lcma.max_enrich_attempts": 3,
    "lcma.sweep_startup_delay_minutes": 10,
    "lcma.sweep_interval_hours": 24,
    "lcma.wm_eviction_days": 7,
    "lcma.receipts_kept": 100000,
    "lcma.ranking": "evidence",
    "lcma.questions_kept": 100_000,
    "lcma.coactivation_days": 90.0,
    "lcma.decay_inactive_days": 7,
    "lcma.temperature_default": 0.5,
    "lcma.entity_max_per_doc": 50,
    "lcma.write_entities": False,
    "lcma.rerank_weights": {
        "lexical": 0.22, "vector": 0.21, "graph": 0.13, "exact_alias": 0.10, "coactivation": 0.10,
        "tags_recency": 0.07, "source_url": 0.05, "freshness": 0.04, "provenance": 0.04, "task_context": 0.04,
    },
    "lcma.note_type_priors": {
        "agent_finding": 0.6, "summary": 0.55, "observation": 0.5, "hypothesis": 0.5, "concept": 0.45,
        "task_record": 0.35, "other": 0.5,
    },
    "lcma.usage_freq_norm_k": 20,
    "lcma.salience_floor": 0.3,
    "lcma.salience_decay_per_day": 0.005,
    "lcma.salience_decay_daily_cap": 0.1,
    "lcma.salience_cited_boost": 0.02,
    "lcma.salience_consolidation_boost": 0.01,
    "lcma.salience_misleading_penalty": 0.05,
    "lcma.salience_ignored_penalty": 0.02,
    "lcma.rerank_salience_weight": 0.1,
    "lcma.rerank_note_type_weight": 0.1,
    "lcma.rerank_usage_weight": 0.1,
    "lcma.usage_freq_weight": 0.6,
    "lcma.usage_recency_weight": 0.4,
    "lcma.usage_recency_halflife_days": 14,
    "lcma.llm.base_url": None,
    "lcma.llm.model": None,
    "lcma.llm.api_key": None,
    "lcma.llm.timeout_seconds": 120,
    "lcma.llm.max_output_tokens": 1024,
    "lcma.llm.daily_token_budget": 250000,
    "lcma.llm.max_calls_per_drain": 10,
    "lcma.llm.confidence_floor": 0.6,
    "lcma.llm.neighbour_k": 5,
    "lcma.llm.min_similarity": 0.35,
    "lcma.llm.max_similarity": 0.92,
    "lcma.llm.snippet_chars": 700,
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
    assert secret == {"server.auth_token", "lcma.llm.api_key"}


def test_variables_are_named_by_section_and_key() -> None:
    assert SETTINGS["lcma.llm.model"].variable == "LITHOS_LCMA__LLM__MODEL"


def test_every_note_type_has_a_prior() -> None:
    assert set(NOTE_TYPES) | {"other"} == set(LcmaConfig().note_type_priors)


def test_partial_weights_are_filled_and_rescaled() -> None:
    """behaviour 160: partial rerank_weights are filled from the defaults, then rescaled to sum 1."""
    weights = LcmaConfig(rerank_weights={"lexical": 0.44}).rerank_weights
    assert sum(weights.values()) == pytest.approx(1)
    assert weights["lexical"] == pytest.approx(0.44 / 1.22)
    assert weights["vector"] == pytest.approx(0.21 / 1.22)


def test_complete_weights_are_kept_when_they_sum_to_one() -> None:
    """behaviour 160: a complete table must sum to 1 within 0.01."""
    complete = dict(DEFAULTS["lcma.rerank_weights"])
    assert LcmaConfig(rerank_weights={**complete, "lexical": 0.23}).rerank_weights["lexical"] == 0.23
    for lexical in (0.2, 0.24):
        with pytest.raises(ValueError, match="sum to 1"):
            LcmaConfig(rerank_weights={**complete, "lexical": lexical})


def test_wrong_weights_and_priors_are_refused(tmp_path: Path) -> None:
    """behaviour 160: an unknown key of rerank_weights is rejected."""
    for key, value in (
        *(("rerank_weights", each) for each in
          ("{lexcal: 0.2}", "{lexical: -0.1}", "{lexical: .inf}", "{lexical: '0.2'}", "[0.2]")),
        ("note_type_priors", "{essay: 0.2}"),
        ("note_type_priors", "{summary: 2}"),
    ):  # fmt: skip
        (tmp_path / "config.yaml").write_text(f"lcma:\n  {key}: {value}\n")
        with pytest.raises(ConfigError) as caught:
            load_config(data_dir=tmp_path, environment={})
        assert key in str(caught.value), value
        assert "for any of" in str(caught.value), value


def test_weights_in_the_environment_are_json() -> None:
    variable = SETTINGS["lcma.rerank_weights"].variable
    loaded = load_config(config_path=Path("/dev/null"), environment={variable: '{"vector": 0}'})
    assert loaded.config.lcma.rerank_weights["vector"] == 0


def test_partial_priors_are_filled() -> None:
    priors = LcmaConfig(note_type_priors={"summary": 0.9}).note_type_priors
    assert priors["summary"] == 0.9
    assert priors["concept"] == 0.45


def test_the_tables_cannot_be_changed() -> None:
    config = LcmaConfig()
    for table in (config.rerank_weights, config.note_type_priors):
        with pytest.raises(TypeError):
            table["lexical"] = 1  # type: ignore[index]
