"""Named tokens in `.lithos/tokens.json`: access to the server by the hash of a secret.

docs/spec/integration.md §3. A secret is 256 random bits, so its plain SHA-256 reveals nothing about it and
needs no salt. The file is replaced whole, under a lock in `.lithos/tokens.lock`, with mode 0600. The lock
file also says whether tokens are asked for at all: it survives a removed or damaged `tokens.json`, so that a
lost file never opens a server.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

from lithos.access.files.named_tokens import (
    DIGEST,
    LONGEST_AGENT,
    LONGEST_NAME,
    RESERVED,
    Token,
    TokenFile,
    check_agent,
    check_name,
    check_scope,
    digest_of,
    row_of_token,
    token_of_row,
)
from lithos.access.files.private_file import LockTimeout, locked, replace_private
from lithos.access.files.scope_rows import size_of_scopes
from lithos.kernel.databases.private_files import PRIVATE_FOLDER, TOKEN_FILES, overwrite, sync_folder
from lithos.kernel.values import principals
from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.principals import Rights
from lithos.notes.model.scopes import Scope

__all__ = [
    "LOCK", "LONGEST_AGENT", "LONGEST_NAME", "MOST_TOKENS", "RESERVED", "TOKENS", "Token", "TokenFile",
    "TokenRefused", "TokenStore", "TokensUnreadable", "check_agent", "check_name", "check_scope", "digest_of",
    "is_released", "make_token", "read_token_file", "read_tokens",
]  # fmt: skip

TOKENS, LOCK = TOKEN_FILES
#: How a secret begins, so that people and scanners know one that lies about.
PREFIX: Final = "lithos_"
#: Tokens of a server, expired ones included.
MOST_TOKENS: Final = 1_000
#: Bytes of all scopes in the file, and of the file: these, and every token at its longest.
LARGEST_SCOPES: Final = 8 * 1024 * 1024
LARGEST: Final = LARGEST_SCOPES + 8 * 1024 * 1024
#: Of a file without scopes, of one with some, and of one with tokens of every vault, or traces of them: a
#: Lithos that knows none of these refuses the file, and drops none.
_VERSION: Final = 1
_VERSION_WITH_SCOPES: Final = 2
_VERSION_OF_EVERY_VAULT: Final = 3
#: Revoked tokens of every vault that are remembered, the newest.
MOST_GONE: Final = 1_000
#: The content of the lock file while tokens are required.
_REQUIRED: Final = b"required\n"
T = TypeVar("T")


class TokensUnreadable(Exception):
    """The file is damaged, unreadable or missing; the message gives the reason and advice.

    `may_pass`: the file could not be read now, as with too many open files; it is to be tried again.
    `is_there`: tokens were defined, for sure.
    """

    def __init__(self, path: Path, why: str, *, may_pass: bool = False, is_there: bool = True) -> None:
        super().__init__(
            f"Named tokens are refused: {path} {why}. Put back a copy of it, or move it away and create new "
            "tokens (lithos token create)"
        )
        self.why = why
        self.may_pass = may_pass
        self.is_there = is_there


class TokenRefused(Exception):
    """A change that cannot be; the message says why and what to do."""


def read_tokens(private: Path) -> tuple[Token, ...] | None:
    """The tokens in the private folder of a data directory; None where none were ever asked for.

    Raises `TokensUnreadable` where they were, and cannot be known now.
    """
    found = read_token_file(private)
    return None if found is None else found.tokens


def read_token_file(private: Path) -> TokenFile | None:
    """The whole file, as `read_tokens` has the tokens of it."""
    path = private / TOKENS
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as failure:
        # With too many open files this raises an error whether the file exists or not; `stat` needs no
        # descriptor.
        size = _size_of(path)
        if size is not None:
            why = f"cannot be read ({failure.strerror})"
            raise TokensUnreadable(path, why, may_pass=True) from failure
        if _size_of(private / LOCK):
            raise TokensUnreadable(path, "is gone, and tokens were defined") from None
        return None
    return _parse(path, data)


def is_released(private: Path) -> bool:
    """Return whether a command has switched tokens off, which a lost file does not do.

    Raises `TokensUnreadable` where that cannot be known now.
    """
    return _size_of(private / LOCK) == 0


def _size_of(path: Path) -> int | None:
    """Return the size of a file, or None if it is missing.

    Raises `TokensUnreadable` if that is not known now.
    """
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
    except OSError as failure:
        why = f"cannot be read ({failure.strerror})"
        raise TokensUnreadable(path, why, may_pass=True, is_there=False) from failure


def _parse(path: Path, data: bytes) -> TokenFile:
    try:
        if len(data) > LARGEST:
            raise ValueError(f"larger than {LARGEST} bytes")
        document = json.loads(data)
        if document["version"] not in (_VERSION, _VERSION_WITH_SCOPES, _VERSION_OF_EVERY_VAULT):
            raise ValueError("of another version of Lithos")
        tokens = tuple(map(token_of_row, document["tokens"]))
        if len({token.name for token in tokens}) != len(tokens) or len(tokens) > MOST_TOKENS:
            raise ValueError("with names twice, or too many tokens")
        gone = tuple(document.get("gone", ()))
        if not all(isinstance(digest, str) and DIGEST.fullmatch(digest) for digest in gone):
            raise ValueError("no hashes")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        # The content of a damaged file is not shown: it may be anything.
        raise TokensUnreadable(path, "is damaged") from None
    return TokenFile(tokens, gone)


def make_token(
    name: str,
    rights: Rights,
    agent: str | None,
    now: datetime,
    expires_at: datetime | None,
    scope: Scope | None = None,
    *,
    every_vault: bool = False,
) -> tuple[Token, str]:
    """A token that is stored nowhere yet, and its secret. Raises `TokenRefused`."""
    try:
        check_name(name)
        if agent is not None:
            agent = principals.check_agent(check_agent(agent))
        check_scope(rights, scope)
    except (ValueError, InvalidInput) as problem:
        raise TokenRefused(str(problem)) from problem
    secret = f"{PREFIX}{secrets.token_urlsafe(32)}"
    digest = digest_of(secret.encode())
    return Token(name, digest, rights, agent, now, expires_at, scope=scope, every_vault=every_vault), secret


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

        Raises `TokenRefused`, `TokensUnreadable` and `OSError`; then no token is made.
        """
        token, secret = make_token(name, rights, agent, now, expires_at, scope)
        self.insert(token)
        return token, secret

    def insert(self, token: Token) -> bool:
        """Add a token; whether none was ever defined before. Raises as `create`."""

        def decide(known: TokenFile) -> TokenFile:
            if any(each.name == token.name for each in known.tokens):
                raise TokenRefused(
                    f"There is a token '{token.name}' already, and its secret cannot be shown again. Choose "
                    f"another name, or revoke it first: lithos token revoke {token.name}"
                )
            if len(known.tokens) >= MOST_TOKENS:
                raise TokenRefused(
                    f"There are {MOST_TOKENS:,} tokens, the most there may be. Revoke expired ones."
                )
            return TokenFile((*known.tokens, token), known.gone)

        return self.exchange(decide)

    def require(self) -> bool:
        """Require tokens from now on, even without any; return whether no token was ever defined before.

        Raises as `create`.
        """
        return self.exchange(lambda known: known)

    def exchange(self, decide: Callable[[TokenFile], TokenFile]) -> bool:
        """Replace the file as `decide` says, or create it; return whether it was missing.

        Raises as `create`, and what `decide` raises; then it is as it was.
        """
        self._private.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        with self._locked() as lock:
            known = self._known()
            left = decide(known or TokenFile())
            if left == known:
                return False
            _check_room(left.tokens)
            _require(lock)
            try:
                self._write(left)
            except OSError:
                if known is None:
                    os.ftruncate(lock, 0)  # no token was defined, so none is asked for
                raise
        return known is None

    def revoke(self, name: str) -> tuple[Token, int]:
        """The token that is no more, and how many are left. Raises as `create`."""
        with self._locked() as lock:
            known = self._known() or TokenFile()
            tokens = known.tokens
            found = next((each for each in tokens if each.name == name), None)
            if found is None:
                names = ", ".join(each.name for each in tokens[:20]) or "none"
                # The argument is not repeated: it may be the secret itself.
                raise TokenRefused(f"There is no token of that name. Tokens: {names}.")
            _require(lock)
            left = tuple(each for each in tokens if each is not found)
            gone = (*known.gone, found.digest)[-MOST_GONE:] if found.every_vault else known.gone
            self._write(TokenFile(left, gone))
        return found, len(left)

    def change(self, decide: Callable[[tuple[Token, ...]], tuple[Sequence[Token], T]]) -> T:
        """Replace the tokens as `decide` says, in one step; return the additional result of `decide`.

        Raises `TokenRefused` where they would be too many, `TokensUnreadable` and `OSError`.
        """
        with self._locked() as lock:
            known = self._known() or TokenFile()
            left, said = decide(known.tokens)
            if len(left) > MOST_TOKENS:
                raise TokenRefused(f"There are {MOST_TOKENS:,} tokens, the most there may be.")
            if tuple(left) != known.tokens:
                _check_room(left)
                _require(lock)
                self._write(TokenFile(tuple(left), known.gone))
        return said

    def stop_asking(self) -> None:
        """Open the server again to all callers, as before the first token.

        Raises `TokenRefused` while there are tokens, `TokensUnreadable` and `OSError`.
        """
        with self._locked() as lock:
            if (known := self._known()) is not None and known.tokens:
                raise TokenRefused("There are tokens: revoke them first (lithos token list shows them).")
            self.path.unlink(missing_ok=True)
            sync_folder(self._private)
            os.ftruncate(lock, 0)
            os.fsync(lock)

    def _known(self) -> TokenFile | None:
        """Return the tokens; a missing file counts as empty, since creating a token fixes that."""
        try:
            return read_token_file(self._private)
        except TokensUnreadable:
            if not self.path.exists():
                return TokenFile()
            raise

    def _write(self, left: TokenFile) -> None:
        """Replace the file, durably."""
        rows = [row_of_token(token) for token in left.tokens]
        has_scopes = any(token.scope is not None for token in left.tokens)
        version = _VERSION_WITH_SCOPES if has_scopes else _VERSION
        if left.gone or any(token.every_vault for token in left.tokens):
            version = _VERSION_OF_EVERY_VAULT
        gone = {"gone": list(left.gone)} if left.gone else {}
        replace_private(self.path, {"version": version, "tokens": rows, **gone})

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The lock file, open and locked: of two commands, one waits."""
        try:
            with locked(self._private / LOCK) as lock:
                yield lock
        except LockTimeout:
            raise TokenRefused("Another command is changing the tokens. Try again in a moment.") from None
        except FileNotFoundError:
            if self._private.is_dir():
                raise
            data = self._private.parent
            raise TokenRefused(
                f"There are no tokens: {data} is not a data directory. Name it with --data-dir."
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
            "The patterns of all tokens together take more space than there is. Use fewer or shorter ones, "
            "such as folders/, or revoke tokens that are not needed."
        )
