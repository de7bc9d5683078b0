"""Settings of learning retrieval (specification: memory, sections 1 and 7)."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from lithos.kernel.configuration.rules import POSITIVE, number, setting, whole
from lithos.kernel.configuration.sections import SettingsSection


@frozen(kw_only=True)
class LcmaConfig:
    """Settings of learning retrieval and of the enrich worker."""

    enabled: bool = setting(
        True, "Offer the tool `lithos_retrieve` and run the enrich worker in the background."
    )
    enrich_drain_interval_minutes: float = setting(
        5.0, "Minutes between two runs of the enrich worker.", POSITIVE
    )
    sweep_startup_delay_minutes: float = setting(
        10.0,
        "Minutes between the start of the server and the first sweep of the enrich worker over all notes.",
        number(0),
    )
    sweep_interval_hours: float = setting(
        24.0, "Hours between two sweeps of the enrich worker over all notes.", POSITIVE
    )
    questions_kept: int = setting(
        100_000,
        "Maximum number of remembered questions with the notes that agents cited for them, "
        "newest first. 0 remembers none.",
        whole(0, 1_000_000),
    )
    receipts_kept: int = setting(
        100_000,
        "Maximum number of retrieval receipts, newest first. Receipts of open or recently closed "
        "tasks are kept in addition. 0 means no limit.",
        whole(0),
    )
    write_entities: bool = setting(
        False,
        "Write extracted entities into the frontmatter of the notes, as new versions. If false, entities "
        "are stored only in `stats.db`.",
    )


_RANKING: Final = "`lithos_retrieve` ranks by hybrid search and by the questions that notes were cited for"
_SALIENCE: Final = "salience follows from the counters of a note"

SETTINGS: Final = (
    SettingsSection(
        "lcma",
        LcmaConfig,
        place=110,
        retired={
            "lcma.coactivation_days": "notes retrieved together are no longer counted",
            "lcma.decay_inactive_days": _SALIENCE,
            "lcma.entity_max_per_doc": "a note has at most 50 entities",
            "lcma.llm": "a worker proposes edges now, see examples/infer_edges.py",
            "lcma.max_enrich_attempts": "a job of the enrich worker is tried three times",
            "lcma.note_type_priors": _RANKING,
            "lcma.ranking": _RANKING,
            "lcma.rerank_note_type_weight": _RANKING,
            "lcma.rerank_salience_weight": _RANKING,
            "lcma.rerank_usage_weight": _RANKING,
            "lcma.rerank_weights": _RANKING,
            "lcma.salience_cited_boost": _SALIENCE,
            "lcma.salience_consolidation_boost": _SALIENCE,
            "lcma.salience_decay_daily_cap": _SALIENCE,
            "lcma.salience_decay_per_day": _SALIENCE,
            "lcma.salience_floor": _SALIENCE,
            "lcma.salience_ignored_penalty": _SALIENCE,
            "lcma.salience_misleading_penalty": _SALIENCE,
            "lcma.temperature_default": "the temperature of a retrieval is 0.5 and changes nothing",
            "lcma.usage_freq_norm_k": _SALIENCE,
            "lcma.usage_freq_weight": _SALIENCE,
            "lcma.usage_recency_halflife_days": _SALIENCE,
            "lcma.usage_recency_weight": _SALIENCE,
            "lcma.wm_eviction_days": "working memory of tasks is no longer kept",
        },
    ),
)
