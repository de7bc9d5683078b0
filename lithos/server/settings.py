"""Settings for the connections of clients, and for the tools and answers that clients get."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from attrs import field, frozen

from lithos.kernel.configuration.rules import NAMES, NOT_BLANK, Disagreement, Rule, setting, whole
from lithos.kernel.configuration.sections import SettingsSection

#: Default maximum length of the answer of a tool, in characters of JSON.
MAX_ANSWER_CHARS: Final = 40_000

#: A limit below 4,000 would not leave enough space for the keys of an answer.
ANSWER_LIMIT = Rule("0 or a whole number of at least 4000", lambda n: n == 0 or n >= 4_000)
AGENT_NAME = Rule(
    "a name of at most 200 characters that is not blank", lambda text: bool(text.strip()) and len(text) <= 200
)
HOST = Rule("a host name or address without spaces", lambda text: bool(re.fullmatch(r"\S+", text)))
TOKEN = Rule(
    "a text of visible ASCII characters without spaces (in YAML put it in quotes)",
    lambda text: bool(re.fullmatch(r"[\x21-\x7e]+", text)),
)
WEB_ADDRESS = Rule(
    "an address that starts with http:// or https://",
    lambda text: bool(re.fullmatch(r"https?://[^\s/]\S*", text)),
)
RIGHTS_MAP = Rule(
    "a map of at most 100 values to read, write or admin",
    lambda given: len(given) <= 100 and set(given.values()) <= {"read", "write", "admin"},
)
#: Public address of the server. It has no path, because the server's metadata is at the root.
PUBLIC_ADDRESS = Rule(
    "an address such as https://notes.example.org, without a path (http only for 127.0.0.1, "
    "[::1] and localhost)",
    lambda text: bool(
        re.fullmatch(
            r"(?:https://[a-z0-9-]+(?:\.[a-z0-9-]+)*|http://(?:127\.0\.0\.1|\[::1\]|localhost))(?::[0-9]{1,5})?",
            text,
        )
    ),
)


def without_slash(address: str | None) -> str | None:
    """Return an address in lower case and without a trailing slash, so that a path can be appended."""
    return None if address is None else address.strip().removesuffix("/").lower()


#: Rights that the values of the rights claim grant by default.
OAUTH_RIGHTS: Final[Mapping[str, str]] = MappingProxyType(
    {"read": "read", "write": "write", "admin": "admin"}
)


@frozen(kw_only=True)
class OauthConfig:
    """Settings of an external authorization server.

    If `issuer` is not set, Lithos uses its own authorization server.
    """

    issuer: str | None = setting(
        None,
        "URL of the external authorization server whose access tokens (JWT) are accepted from remote "
        "clients. null means that Lithos uses its own authorization server.",
        WEB_ADDRESS,
    )
    audience: str | None = setting(
        None,
        "Audience that the tokens of the external issuer must have. null means `server.public_url`, alone "
        "or followed by `/mcp` or `/sse`.",
        NOT_BLANK,
    )
    rights_claim: str = setting("scope", "Name of the token claim that contains the rights.", NOT_BLANK)
    rights: Mapping[str, str] = setting(
        OAUTH_RIGHTS,
        "Right (`read`, `write` or `admin`) that each value of the rights claim grants.",
        RIGHTS_MAP,
    )


@frozen(kw_only=True)
class ServerConfig:
    """Settings for the connections of clients, and for the tools and answers that clients get."""

    transport: Literal["stdio", "sse", "http"] = setting(
        "stdio", "Transport for MCP clients. `sse` and `http` start the same HTTP server."
    )
    host: str = setting("127.0.0.1", "Network address on which the HTTP server listens.", HOST)
    port: int = setting(8765, "Port of the HTTP server. 0 selects a free port.", whole(0, 65535))
    watch_files: bool = setting(True, "Detect changes that other programs make to notes.")
    tools: Literal["core", "standard", "full", "connector"] = setting(
        "standard", "Set of tools that clients see. `connector` contains only `search` and `fetch`."
    )
    legacy_tools: bool = setting(False, "Also offer the tools of earlier versions.")
    write_outcomes: Literal["envelope", "status"] = setting(
        "envelope",
        "Form of the answer to a refused write. `envelope` returns the status `error` with a code. `status` "
        "returns the code of some errors, such as `version_conflict`, as the status.",
    )
    answers: Literal["compact", "full"] = setting(
        "compact",
        "Keys that answers contain. `compact` leaves out empty and default values. `full` returns every "
        "key, for programs that need them.",
    )
    max_answer_chars: int = setting(
        MAX_ANSWER_CHARS,
        "Maximum length of an answer, in characters of JSON. 0 means no limit, which is the default with "
        "`write_outcomes: status`.",
        ANSWER_LIMIT,
    )
    auth_token: str | None = setting(
        None,
        "Bearer token that every request must contain. null means no shared token. Named tokens (`lithos "
        "token`) can still be required.",
        TOKEN,
        secret=True,
    )
    allowed_hosts: tuple[str, ...] = setting(
        (), "Additional host names under which the server answers. `*` allows any host name.", NAMES
    )
    allowed_origins: tuple[str, ...] = setting(
        (), "Additional web origins whose pages can call the server. `*` allows any origin.", NAMES
    )

    public_url: str | None = setting(
        None,
        "Public address of this server for remote clients. If it is set, remote clients connect through "
        "OAuth and every client needs a token.",
        PUBLIC_ADDRESS,
        convert=without_slash,
    )
    oauth: OauthConfig = field(factory=OauthConfig)

    console: bool = setting(True, "Serve the web console at `/console/` (HTTP transports only).")
    console_agent: str = setting(
        "person",
        "Agent name recorded for changes made in the console. It is not used if the user chooses another "
        "name or has a token that is bound to an agent.",
        AGENT_NAME,
    )

    def __attrs_post_init__(self) -> None:
        if self.oauth.issuer is not None and self.public_url is None:
            raise Disagreement(
                "server.oauth.issuer is set but server.public_url is not; set server.public_url "
                "to the address that its tokens are for, or remove the issuer",
                "server.oauth.issuer",
                "server.public_url",
            )
        if self.public_url is not None and self.oauth.issuer is None and not self.console:
            raise Disagreement(
                "server.public_url is set but server.console is false; users allow remote "
                "clients in the console, so set server.console to true, or remove "
                "server.public_url",
                "server.public_url",
                "server.console",
            )

    @property
    def answer_limit(self) -> int:
        """Return the maximum length of an answer, in characters of JSON.

        0 means no limit. This is the default for `status` clients, because they expect complete lists.
        """
        is_default = self.max_answer_chars == MAX_ANSWER_CHARS
        return 0 if is_default and self.is_plain else self.max_answer_chars

    @property
    def is_plain(self) -> bool:
        """Return whether clients expect upstream's answers, such as plain `success` for deletions."""
        return self.write_outcomes == "status"

    @property
    def answers_compactly(self) -> bool:
        """Return whether answers leave out empty values, default values and explanations."""
        return self.answers == "compact" and self.tools != "full" and self.write_outcomes != "status"


_SCRAPE: Final = "metrics are no longer exported; let your collector scrape `/metrics`"

SETTINGS: Final = (
    SettingsSection(
        "server",
        ServerConfig,
        place=10,
        is_shared=True,
        short={
            "LITHOS_HOST": "server.host",
            "LITHOS_PORT": "server.port",
            "LITHOS_TRANSPORT": "server.transport",
            "LITHOS_AUTH_TOKEN": "server.auth_token",
        },
        retired={"telemetry": _SCRAPE},
        retired_short={"LITHOS_ENVIRONMENT": _SCRAPE, "LITHOS_OTEL_ENABLED": _SCRAPE},
    ),
)
