"""The sections of the configuration as frozen values (specification: cli-config, section 4).

Section `lcma`, retrieval that learns: docs/spec/memory.md §1 and §7.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from attrs import field, frozen

from lithos.config.rules import (
    AGENT_NAME,
    ANSWER_LIMIT,
    DIRECTORY,
    FRACTION,
    HOST,
    INNER_FOLDER,
    NAMES,
    NOT_BLANK,
    PATTERNS,
    POSITIVE,
    PUBLIC_ADDRESS,
    RIGHTS_MAP,
    TOKEN,
    WEB_ADDRESS,
    Disagreement,
    number,
    setting,
    whole,
    without_slash,
)

#: Characters of JSON of a tool's answer, unless configured.
MAX_ANSWER_CHARS: Final = 40_000


@frozen(kw_only=True)
class LcmaConfig:
    """Retrieval that learns, and the enrich worker."""

    enabled: bool = setting(True, "Offer `lithos_retrieve` and run the enrich worker.")
    enrich_drain_interval_minutes: float = setting(
        5.0, "Minutes between two runs of the enrich worker.", POSITIVE
    )
    sweep_startup_delay_minutes: float = setting(
        10.0, "Minutes from the start to the first sweep.", number(0)
    )
    sweep_interval_hours: float = setting(24.0, "Hours between two sweeps.", POSITIVE)
    questions_kept: int = setting(
        100_000,
        "Questions that notes were cited for and that are remembered, the newest; 0 remembers none.",
        whole(0, 1_000_000),
    )
    receipts_kept: int = setting(
        100_000,
        "Newest receipts of retrievals that are kept; those of open and lately closed tasks stay longer; "
        "0 keeps all.",
        whole(0),
    )
    write_entities: bool = setting(
        False,
        "Write the entities that were found into the frontmatter of the notes, as new versions of them; else "
        "they are kept beside the notes, in `stats.db`.",
    )


#: What values of the claim allow, unless it is said otherwise.
OAUTH_RIGHTS: Final[Mapping[str, str]] = MappingProxyType(
    {"read": "read", "write": "write", "admin": "admin"}
)


@frozen(kw_only=True)
class OauthConfig:
    """Somebody else's authorization server; the server's own without `issuer`."""

    issuer: str | None = setting(
        None, "Issuer whose access tokens (JWT) let clients elsewhere in.", WEB_ADDRESS
    )
    audience: str | None = setting(
        None, "What its tokens must be for; null: the address of this server.", NOT_BLANK
    )
    rights_claim: str = setting("scope", "Claim that says what a token allows.", NOT_BLANK)
    rights: Mapping[str, str] = setting(OAUTH_RIGHTS, "Rights by the values of that claim.", RIGHTS_MAP)


@frozen(kw_only=True)
class ServerConfig:
    """How the server is reached and what it offers."""

    transport: Literal["stdio", "sse", "http"] = setting(
        "stdio", "How MCP clients connect; sse and http are one server."
    )
    host: str = setting("127.0.0.1", "Address that the HTTP port is bound to.", HOST)
    port: int = setting(8765, "Port of the HTTP server; 0 takes a free one.", whole(0, 65535))
    watch_files: bool = setting(True, "Notice notes that other programs change.")
    tools: Literal["core", "standard", "full", "connector"] = setting(
        "standard", "Which tools are listed to clients; `connector`: `search` and `fetch` alone."
    )
    legacy_tools: bool = setting(False, "Also offer the tools of earlier versions.")
    write_outcomes: Literal["envelope", "status"] = setting(
        "envelope", "Whether a refused write has status `error` or its own code as status."
    )
    answers: Literal["compact", "full"] = setting(
        "compact",
        "`compact`: answers leave out what says nothing; `full`: every key, for programs that need it.",
    )
    max_answer_chars: int = setting(
        MAX_ANSWER_CHARS,
        "Most characters of JSON of an answer, 0: no limit; none by default with `write_outcomes: status`.",
        ANSWER_LIMIT,
    )
    auth_token: str | None = setting(None, "Bearer token that every request must carry.", TOKEN, secret=True)
    allowed_hosts: tuple[str, ...] = setting(
        (), "Further host names under which the server answers; `*` is any.", NAMES
    )
    allowed_origins: tuple[str, ...] = setting(
        (), "Further web origins whose pages may call the server; `*` is any.", NAMES
    )

    public_url: str | None = setting(
        None,
        "Address at which clients elsewhere see this server; they are let in by OAuth then, and everybody "
        "needs a token.",
        PUBLIC_ADDRESS,
        convert=without_slash,
    )
    oauth: OauthConfig = field(factory=OauthConfig)

    console: bool = setting(True, "Serve the web console at `/console/` (HTTP transports only).")
    console_agent: str = setting(
        "person",
        "Agent name of changes made in the console, unless its user chooses another or has a token that is "
        "bound to an agent.",
        AGENT_NAME,
    )

    def __attrs_post_init__(self) -> None:
        if self.oauth.issuer is not None and self.public_url is None:
            raise Disagreement(
                "server.oauth.issuer is set but server.public_url is not; give the address that its tokens "
                "are for, or take the issuer out",
                "server.oauth.issuer",
                "server.public_url",
            )
        if self.public_url is not None and self.oauth.issuer is None and not self.console:
            raise Disagreement(
                "server.public_url is set but server.console is false; people allow clients there, so switch "
                "it on, or take the address out",
                "server.public_url",
                "server.console",
            )

    @property
    def answer_limit(self) -> int:
        """The most characters of an answer, 0 for no limit; clients of `status` expect whole lists."""
        is_default = self.max_answer_chars == MAX_ANSWER_CHARS
        return 0 if is_default and self.is_plain else self.max_answer_chars

    @property
    def is_plain(self) -> bool:
        """Whether clients know no more than upstream's: deletions answer `success` alone, reads all links."""
        return self.write_outcomes == "status"


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
    vault: Path | None = setting(
        None,
        "Folder of Markdown files, served where it lies; nothing but notes is written there.",
        DIRECTORY,
    )
    lock: bool = setting(
        True, "Whether to refuse a file system without locks, where a second server could not be kept out."
    )
    ignore: tuple[str, ...] | None = setting(
        None,
        "Patterns of files that are not notes, from the notes folder on; null: with a vault the templates "
        "that the settings of Obsidian and its plugins name.",
        NAMES,
    )
    protected: tuple[str, ...] = setting(
        (), "Patterns of notes that only persons change, whatever an agent's token allows.", PATTERNS
    )
    conflict_copies: Literal["ask", "merge", "ignore"] = setting(
        "ask",
        "What becomes of the copies that programs which synchronise folders leave of a conflict: `ask` shows "
        "them until a person merges them, `merge` merges at once those that nobody has to decide and whose "
        "names no person gives, to `ignore` is to take them for notes.",
    )

    @property
    def notes_folder(self) -> Path:
        """The folder of the notes."""
        return self.data_dir / self.knowledge_subdir if self.vault is None else self.vault


@frozen(kw_only=True)
class SearchConfig:
    """Embedding, chunking and fusion."""

    embedding_model: str = setting(
        "builtin", "`builtin`, a directory, or the Hugging Face name of a model2vec model.", NOT_BLANK
    )
    semantic_threshold: float | None = setting(
        None,
        "Smallest similarity that counts; null: 0.3 in hybrid and graph searches and retrieval, and in "
        "semantic searches that of the model.",
        FRACTION,
    )
    cache_confidence: float | None = setting(
        None,
        "Least probability that makes a note a cached answer; null: 0.79, in the accurate tier 0.74, set for "
        "at most 5 % of false hits.",
        FRACTION,
    )
    max_results: int = setting(50, "Upper bound of `limit` in a search.", whole(1, 10_000))
    fusion: Literal["blend", "rrf"] = setting("blend", "How hybrid search unites its two lists.")
    semantic_weight: float | None = setting(
        None,
        "Share of the semantic score in `blend`; unset, 0.2 in the static tier and 0.4 in the accurate one.",
        FRACTION,
    )
    tier: Literal["auto", "static", "accurate"] = setting(
        "auto", "Which vectors searches use; `auto` is accurate where onnxruntime is installed."
    )
    accurate_threads: int = setting(
        1, "Threads that a text of the accurate tier is embedded with.", whole(1, 64)
    )
    lead_weight: float = setting(
        0.5,
        "Weight of how early a note has the words of the query, among the 60 best; 0: none.",
        number(0, 100),
    )
    chunk_size: int = setting(
        500,
        "Characters up to which paragraphs make one chunk; no chunk exceeds twice as many.",
        whole(1, 100_000),
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


@frozen(kw_only=True)
class CoordinationConfig:
    """Claims on tasks; a claim's time is clamped to the maximum, never refused."""

    claim_default_ttl_minutes: int = setting(
        60, "Minutes a claim holds when none are asked for.", whole(1, 525_600)
    )
    claim_max_ttl_minutes: int = setting(480, "Most minutes a claim can be asked for.", whole(1, 525_600))
    strict: bool = setting(
        False,
        "Refuse to claim a blocked task, and to complete one that only others have claims on.",
    )
    max_attempts: int = setting(
        3, "Failed attempts (`lithos_task_release` with `failed`) after which a task fails.", whole(1, 1_000)
    )
    retry_minutes: float = setting(
        1, "Minutes until a failed task is tried again; doubled with each attempt.", number(0.1, 1_440)
    )


@frozen(kw_only=True)
class ProposalsConfig:
    """Changes that wait for a person."""

    days: int = setting(30, "Days until a proposal that nobody looked at expires.", whole(1, 3_650))


@frozen(kw_only=True)
class AttachmentsConfig:
    """What lies beside the notes."""

    enabled: bool | None = setting(
        None,
        "Whether PDF files, canvases, drawings, texts and images of the notes folder are found and read; "
        "null: with a vault.",
    )


@frozen(kw_only=True)
class CareConfig:
    """What in the notes wants care."""

    days: int = setting(
        180,
        "Days without a change, a read or a citation after which a note counts as not used; reads are known "
        "for `events.audit_days`.",
        whole(1, 36_500),
    )


@frozen(kw_only=True)
class EventsConfig:
    """The journal and its delivery."""

    journal_size: int = setting(
        100_000, "Events the journal keeps, and 2,560 bytes for each.", whole(1, 1_000_000_000)
    )
    audit_days: int = setting(90, "Days for which `/audit` knows who read what.", whole(1, 36_500))
    audit_rows: int = setting(1_000_000, "Accesses that `/audit` knows at most.", whole(1, 1_000_000_000))
    event_buffer_size: int = setting(
        500, "Recent events held in memory to save journal reads.", whole(1, 1_000_000)
    )
    subscriber_queue_size: int = setting(
        100, "Events a subscriber may fall behind before its stream ends.", whole(1, 1_000_000)
    )
    max_sse_clients: int = setting(50, "Most clients of `/events` at one time.", whole(0, 100_000))
    max_ws_clients: int = setting(50, "Most clients of `/events/ws` at one time.", whole(0, 100_000))


@frozen(kw_only=True)
class HistoryConfig:
    """Which versions of notes are kept, and for how long; 0 is without end."""

    enabled: bool = setting(True, "Keep every version of every note.")
    keep_days: int = setting(
        365, "Days for which versions are kept; the first and the newest always are.", whole(0, 1_000_000)
    )
    keep_versions: int = setting(
        200, "Versions of one note that are kept, not counting those of the last 24 hours.", whole(0, 100_000)
    )
    keep_deleted_days: int = setting(
        365, "Days for which the versions of a deleted note are kept.", whole(0, 1_000_000)
    )
