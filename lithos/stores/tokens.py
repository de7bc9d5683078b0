"""Named tokens in `.lithos/tokens.json`: who may use the server, by the hash of a secret.

docs/spec/integration.md §3. A secret is 256 random bits, so its plain SHA-256 tells nothing of it and needs
no salt. The file is replaced whole, under a lock in `.lithos/tokens.lock`, with mode 0600. The lock file also
says whether tokens are asked for at all: it survives a removed or damaged `tokens.json`, so that a lost file
never opens a server.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

from attrs import field, frozen

from lithos.core import principals
from lithos.core.errors import InvalidInput
from lithos.core.oauth.grants import Grant
from lithos.core.principals import RIGHTS, Principal, Rights
from lithos.core.scopes import Scope
from lithos.core.times import format_optional, format_time, parse_time
from lithos.stores import PRIVATE_FOLDER, overwrite, sync_folder
from lithos.stores.oauth.grant_rows import grant_of_row, row_of_grant
from lithos.stores.oauth.private_file import FileBusy, locked, replace_private
from lithos.stores.oauth.scope_rows import row_of_scope, scope_of_row, size_of_scopes

TOKENS: Final = "tokens.json"
LOCK: Final = "tokens.lock"
#: How a secret begins, so that people and scanners know one that lies about.
PREFIX: Final = "lithos_"
#: Tokens of a server, expired ones included.
MOST_TOKENS: Final = 1_000
#: Characters of a token's name, and of an agent id.
LONGEST_NAME: Final = 64
LONGEST_AGENT: Final = 200
#: Bytes of all scopes in the file, and of the file: these, and every token at its longest.
LARGEST_SCOPES: Final = 8 * 1024 * 1024
LARGEST: Final = LARGEST_SCOPES + 8 * 1024 * 1024
#: Names of principals that are no named token.
RESERVED: Final = frozenset({"anyone", "auth_token", "owner"})
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._@-]*[A-Za-z0-9])?")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
#: Of a file without scopes, and of one with some: a Lithos that knows no scopes refuses it, and drops none.
_VERSION: Final = 1
_VERSION_WITH_SCOPES: Final = 2
#: What the lock file holds while tokens are asked for.
_REQUIRED: Final = b"required\n"
T = TypeVar("T")


class TokensUnreadable(Exception):
    """The file is damaged, unreadable or gone; the message says why and what to do."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"Named tokens are refused: {path} {why}. Put back a copy of it, or move it away and create the "
            "tokens anew (lithos token create)"
        )
        self.why = why


class TokenRefused(Exception):
    """A change that cannot be; the message says why and what to do."""


@frozen
class Token:
    """One named token; `digest` is the SHA-256 of its secret in hexadecimal.

    What a person allowed a client has a `grant`, which knows the secrets; `digest` is then of one that nobody
    has, and tells the grant from others.
    """

    name: str
    digest: str = field(repr=False)
    rights: Rights
    agent: str | None
    created_at: datetime
    expires_at: datetime | None
    grant: Grant | None = None
    #: What it may change (docs/spec/scopes.md §1); None limits nothing.
    scope: Scope | None = None

    @property
    def is_pending(self) -> bool:
        """Whether it is a grant whose client has not fetched its tokens yet; else it goes by itself."""
        return self.grant is not None and not self.grant.code.is_used

    def has_expired(self, now: datetime) -> bool:
        """Whether it is of no use any more."""
        if self.grant is not None and self.grant.has_ended(now):
            return True
        return self.expires_at is not None and now >= self.expires_at

    @property
    def principal(self) -> Principal:
        """Whoever presents it."""
        is_connector = self.grant is not None
        return Principal(self.name, self.rights, self.agent, mark=self.digest[:16], is_connector=is_connector)


def digest_of(secret: bytes) -> str:
    """What is stored of a secret."""
    return hashlib.sha256(secret).hexdigest()


def read_tokens(private: Path) -> tuple[Token, ...] | None:
    """The tokens in the private folder of a data directory; None where none were ever asked for.

    Raises `TokensUnreadable` where they were, and cannot be known now.
    """
    path = private / TOKENS
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        if _is_required(private):
            raise TokensUnreadable(path, "is gone, and tokens were defined") from None
        return None
    except OSError as failure:
        raise TokensUnreadable(path, f"cannot be read ({failure.strerror})") from failure
    return _parse(path, data)


def is_released(private: Path) -> bool:
    """Whether a command said that tokens are asked for no more, which a lost file does not."""
    try:
        return (private / LOCK).stat().st_size == 0
    except OSError:
        return False


def _is_required(private: Path) -> bool:
    """Whether tokens are asked for; an unreadable lock file says so too."""
    try:
        return (private / LOCK).stat().st_size > 0
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _parse(path: Path, data: bytes) -> tuple[Token, ...]:
    try:
        if len(data) > LARGEST:
            raise ValueError(f"larger than {LARGEST} bytes")
        document = json.loads(data)
        if document["version"] not in (_VERSION, _VERSION_WITH_SCOPES):
            raise ValueError("of another version of Lithos")
        tokens = tuple(map(_token_of, document["tokens"]))
        if len({token.name for token in tokens}) != len(tokens) or len(tokens) > MOST_TOKENS:
            raise ValueError("with names twice, or too many tokens")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        # What is in a damaged file is not told: it may be anything.
        raise TokensUnreadable(path, "is damaged") from None
    return tokens


def _token_of(row: dict[str, Any]) -> Token:
    token = Token(
        name=check_name(row["name"]),
        digest=row["hash"],
        rights=row["rights"],
        agent=None if row["agent"] is None else check_agent(row["agent"]),
        created_at=parse_time(row["created_at"]),
        expires_at=None if row["expires_at"] is None else parse_time(row["expires_at"]),
        grant=grant_of_row(row["grant"]) if "grant" in row else None,
        scope=scope_of_row(row),
    )
    if token.rights not in RIGHTS or not _DIGEST.fullmatch(token.digest):
        raise ValueError("no such rights, or no hash")
    return token


def check_name(name: str) -> str:
    """A name that can be told in messages, logs and file lists. Raises `ValueError`."""
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise ValueError(
            f"A token's name has 1 to {LONGEST_NAME} letters, digits, dots, dashes, underscores or @, and "
            "begins and ends with a letter or digit."
        )
    if name in RESERVED:
        raise ValueError(f"The name '{name}' is kept for another token; choose another name.")
    return name


def check_agent(agent: str) -> str:
    """An agent id that every tool takes. Raises `ValueError`."""
    is_text = isinstance(agent, str) and agent.isprintable()
    if not is_text or not agent or agent.strip() != agent or len(agent) > LONGEST_AGENT:
        raise ValueError(
            f"An agent id has 1 to {LONGEST_AGENT} printable characters, with no space around them."
        )
    return agent


def check_scope(rights: Rights, scope: Scope | None) -> None:
    """Raises `ValueError` for a scope beside rights that change nothing."""
    if scope is not None and rights == "read":
        raise ValueError(
            "A token with the rights read changes nothing, so it takes no --write and no --propose. Leave "
            "them out, or give it --rights write."
        )


class TokenStore:
    """Changes the tokens of a data directory, with or without a running server. Every method may block."""

    def __init__(self, private: Path) -> None:
        """`private` is the folder `.lithos` of the data directory."""
        self.path = private / TOKENS
        self._private = private

    def create(
        self,
        name: str,
        rights: Rights,
        agent: str | None,
        now: datetime,
        expires_at: datetime | None,
        scope: Scope | None = None,
    ) -> tuple[Token, str]:
        """A new token and its secret, which is kept nowhere. `scope` limits what it may change.

        Raises `TokenRefused`, `TokensUnreadable` and `OSError`; then there is none.
        """
        try:
            check_name(name)
            if agent is not None:
                principals.check_agent(check_agent(agent))
            check_scope(rights, scope)
        except (ValueError, InvalidInput) as problem:
            raise TokenRefused(str(problem)) from problem
        secret = f"{PREFIX}{secrets.token_urlsafe(32)}"
        token = Token(name, digest_of(secret.encode()), rights, agent, now, expires_at, scope=scope)
        self._private.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        with self._locked() as lock:
            known = self._known()
            tokens = known or ()
            if any(each.name == name for each in tokens):
                raise TokenRefused(
                    f"There is a token '{name}' already, and its secret cannot be shown again. Choose "
                    f"another name, or revoke it first: lithos token revoke {name}"
                )
            if len(tokens) >= MOST_TOKENS:
                raise TokenRefused(
                    f"There are {MOST_TOKENS:,} tokens, the most there may be. Revoke expired ones."
                )
            _check_room((*tokens, token))
            _require(lock)
            try:
                self._write((*tokens, token))
            except OSError:
                if known is None:
                    os.ftruncate(lock, 0)  # no token was defined, so none is asked for
                raise
        return token, secret

    def revoke(self, name: str) -> tuple[Token, int]:
        """The token that is no more, and how many are left. Raises as `create`."""
        with self._locked() as lock:
            tokens = self._known() or ()
            found = next((each for each in tokens if each.name == name), None)
            if found is None:
                names = ", ".join(each.name for each in tokens[:20]) or "none"
                # What was typed is not repeated: it may be the secret itself.
                raise TokenRefused(f"There is no token of that name. Tokens: {names}.")
            _require(lock)
            left = tuple(each for each in tokens if each is not found)
            self._write(left)
        return found, len(left)

    def change(self, decide: Callable[[tuple[Token, ...]], tuple[Sequence[Token], T]]) -> T:
        """Replace the tokens as `decide` says, in one step; what it says beside them.

        Raises `TokenRefused` where they would be too many, `TokensUnreadable` and `OSError`.
        """
        with self._locked() as lock:
            known = self._known() or ()
            left, said = decide(known)
            if len(left) > MOST_TOKENS:
                raise TokenRefused(f"There are {MOST_TOKENS:,} tokens, the most there may be.")
            if tuple(left) != known:
                _check_room(left)
                _require(lock)
                self._write(left)
        return said

    def stop_asking(self) -> None:
        """Have the server open again to whoever reaches it, as before the first token.

        Raises `TokenRefused` while there are tokens, `TokensUnreadable` and `OSError`.
        """
        with self._locked() as lock:
            if self._known():
                raise TokenRefused("There are tokens: revoke them first (lithos token list shows them).")
            self.path.unlink(missing_ok=True)
            sync_folder(self._private)
            os.ftruncate(lock, 0)
            os.fsync(lock)

    def _known(self) -> tuple[Token, ...] | None:
        """The tokens; a file that is gone counts as empty, since creating is the way out of that."""
        try:
            return read_tokens(self._private)
        except TokensUnreadable:
            if not self.path.exists():
                return ()
            raise

    def _write(self, tokens: Sequence[Token]) -> None:
        """Replace the file, durably."""
        rows = [_row_of(token) for token in tokens]
        has_scopes = any(token.scope is not None for token in tokens)
        version = _VERSION_WITH_SCOPES if has_scopes else _VERSION
        replace_private(self.path, {"version": version, "tokens": rows})

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The lock file, open and locked: of two commands, one waits."""
        try:
            with locked(self._private / LOCK) as lock:
                yield lock
        except FileBusy:
            raise TokenRefused("Another command is changing the tokens. Try again in a moment.") from None
        except FileNotFoundError:
            if self._private.is_dir():
                raise
            data = self._private.parent
            raise TokenRefused(
                f"There are no tokens: {data} is no data directory. Name it with --data-dir."
            ) from None


def _require(lock: int) -> None:
    """Note, before the first token is stored, that tokens are asked for from now on."""
    if os.fstat(lock).st_size != len(_REQUIRED):
        overwrite(lock, _REQUIRED)
        os.fsync(lock)


def _check_room(tokens: Sequence[Token]) -> None:
    """Raises `TokenRefused` where the scopes of these tokens would not fit into the file."""
    if size_of_scopes(token.scope for token in tokens) > LARGEST_SCOPES:
        raise TokenRefused(
            "The patterns of all tokens together take more room than there is. Give fewer or shorter ones, "
            "such as folders/, or revoke tokens that nobody needs."
        )


def _row_of(token: Token) -> dict[str, Any]:
    grant = {} if token.grant is None else {"grant": row_of_grant(token.grant)}
    return {
        "name": token.name,
        "hash": token.digest,
        "agent": token.agent,
        "rights": token.rights,
        "created_at": format_time(token.created_at),
        "expires_at": format_optional(token.expires_at),
        **row_of_scope(token.scope),
        **grant,
    }
