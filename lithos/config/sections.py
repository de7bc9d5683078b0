"""The sections of the configuration except `lcma` (specification: cli-config, section 4)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from attrs import frozen

from lithos.config.rules import (
    DIRECTORY,
    FRACTION,
    HOST,
    INNER_FOLDER,
    NAMES,
    NOT_BLANK,
    TOKEN,
    Disagreement,
    setting,
    whole,
)


@frozen(kw_only=True)
class ServerConfig:
    """How the server is reached and what it offers."""

    transport: Literal["stdio", "sse", "http"] = setting(
        "stdio", "How MCP clients connect; sse and http are one server."
    )
    host: str = setting("127.0.0.1", "Address that the HTTP port is bound to.", HOST)
    port: int = setting(8765, "Port of the HTTP server; 0 takes a free one.", whole(0, 65535))
    watch_files: bool = setting(True, "Notice notes that other programs change.")
    tools: Literal["core", "standard", "full"] = setting("standard", "Which tools are listed to clients.")
    legacy_tools: bool = setting(False, "Also offer the tools of earlier versions.")
    write_outcomes: Literal["envelope", "status"] = setting(
        "envelope", "Whether a refused write has status `error` or its own code as status."
    )
    auth_token: str | None = setting(None, "Bearer token that every request must carry.", TOKEN, secret=True)
    allowed_hosts: tuple[str, ...] = setting(
        (), "Further host names under which the server answers; `*` is any.", NAMES
    )
    allowed_origins: tuple[str, ...] = setting(
        (), "Further web origins whose pages may call the server; `*` is any.", NAMES
    )


@frozen(kw_only=True)
class StorageConfig:
    """Where notes and databases are."""

    data_dir: Path = setting(Path("data"), "Directory that holds everything Lithos stores.", DIRECTORY)
    knowledge_subdir: str = setting(
        "knowledge", "Folder of the notes inside the data directory.", INNER_FOLDER
    )
    max_content_size_bytes: int = setting(
        1_000_000, "Largest content of one note, in bytes of UTF-8.", whole(1, 1_000_000_000)
    )


@frozen(kw_only=True)
class SearchConfig:
    """Embedding, chunking and fusion."""

    embedding_model: str = setting(
        "builtin", "`builtin`, a directory, or the Hugging Face name of a model2vec model.", NOT_BLANK
    )
    semantic_threshold: float = setting(0.3, "Smallest similarity that a semantic search returns.", FRACTION)
    cache_threshold: float = setting(
        0.65,
        "Least mean of similarity and share of the question's words that makes a note a cached answer.",
        FRACTION,
    )
    max_results: int = setting(50, "Upper bound of `limit` in a search.", whole(1, 10_000))
    fusion: Literal["blend", "rrf"] = setting("blend", "How hybrid search unites its two lists.")
    semantic_weight: float = setting(0.2, "Share of the semantic score in `blend`.", FRACTION)
    chunk_size: int = setting(
        500, "Characters up to which paragraphs are packed into one chunk.", whole(1, 100_000)
    )
    chunk_max: int = setting(1000, "Characters that no chunk exceeds.", whole(1, 100_000))

    def __attrs_post_init__(self) -> None:
        if self.chunk_size > self.chunk_max:
            raise Disagreement(
                f"search.chunk_size ({self.chunk_size}) is larger than search.chunk_max ({self.chunk_max}); "
                "lower the first or raise the second",
                "search.chunk_size",
                "search.chunk_max",
            )


@frozen(kw_only=True)
class IndexConfig:
    """Following the files."""

    rebuild_on_start: bool = setting(False, "Build every index anew at each start.")
    watch_debounce_ms: int = setting(
        500, "Milliseconds of quiet before outside changes are taken in.", whole(0, 60_000)
    )
    watch_mode: Literal["auto", "native", "poll"] = setting(
        "auto", "How outside changes are noticed; `auto` tries notifications, then polls."
    )
    max_vanished_fraction: float = setting(
        0.5, "Share of vanished notes above which nothing is removed from the indexes.", FRACTION
    )


@frozen(kw_only=True)
class CoordinationConfig:
    """Claims on tasks; a claim's time is clamped to the maximum, never refused."""

    claim_default_ttl_minutes: int = setting(
        60, "Minutes a claim holds when none are asked for.", whole(1, 525_600)
    )
    claim_max_ttl_minutes: int = setting(480, "Most minutes a claim can be asked for.", whole(1, 525_600))


@frozen(kw_only=True)
class EventsConfig:
    """The journal and its delivery."""

    enabled: bool = setting(True, "Keep the event journal and deliver events.")
    journal_size: int = setting(100_000, "Events the journal keeps.", whole(1, 1_000_000_000))
    event_buffer_size: int = setting(
        500, "Recent events held in memory to save journal reads.", whole(1, 1_000_000)
    )
    subscriber_queue_size: int = setting(
        100, "Events a subscriber may fall behind before its stream ends.", whole(1, 1_000_000)
    )
    sse_enabled: bool = setting(True, "Offer `/events`.")
    max_sse_clients: int = setting(50, "Most clients of `/events` at one time.", whole(0, 100_000))
    ws_enabled: bool = setting(True, "Offer `/events/ws`.")
    max_ws_clients: int = setting(50, "Most clients of `/events/ws` at one time.", whole(0, 100_000))


@frozen(kw_only=True)
class TelemetryConfig:
    """Export of metrics by OTLP; `/metrics` is there without it."""

    enabled: bool = setting(False, "Export metrics by OTLP.")
    endpoint: str | None = setting(None, "Address of the OTLP collector.", NOT_BLANK)
    console_fallback: bool = setting(False, "Print metrics on stderr when there is no collector.")
    service_name: str = setting("lithos", "Service name in exported metrics.", NOT_BLANK)
    environment: str | None = setting(None, "Deployment environment in exported metrics.", NOT_BLANK)
    export_interval_ms: int = setting(30_000, "Milliseconds between two exports.", whole(1, 86_400_000))
