"""Named tokens in `.lithos/tokens.json`.

The file contains the hash of each secret that gives access to the server.

Specified in docs/spec/integration.md §3. A secret has 256 random bits, so its plain SHA-256 reveals nothing
and needs no salt. The file is replaced as a whole, with mode 0600, while `.lithos/tokens.lock` is locked. The
lock file also records whether tokens are required. This record survives if `tokens.json` is removed or
damaged, so that a lost file never opens a server.
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
#: Prefix of all secrets. People and scanners recognise a leaked secret by it.
PREFIX: Final = "lithos_"
#: Maximum number of tokens, including expired ones.
MOST_TOKENS: Final = 1_000
#: Maximum bytes of all scopes, and maximum bytes of the file if every token has its maximum length.
LARGEST_SCOPES: Final = 8 * 1024 * 1024
LARGEST: Final = LARGEST_SCOPES + 8 * 1024 * 1024
#: File versions: without scopes, with scopes, and with tokens of every vault or their revocation records. An
#: older Lithos refuses a file with a newer version, so that no token is lost.
_VERSION: Final = 1
_VERSION_WITH_SCOPES: Final = 2
_VERSION_OF_EVERY_VAULT: Final = 3
#: Maximum number of remembered revoked tokens of every vault. If there are more, the newest are kept.
MOST_GONE: Final = 1_000
#: Content of the lock file while tokens are required.
_REQUIRED: Final = b"required\n"
T = TypeVar("T")


class TokensUnreadable(Exception):
    """Error for a damaged, unreadable or missing token file. The message gives the reason and advice.

    `may_pass` means that the error may be temporary (for example too many open files), so a retry may
    succeed. `is_there` means that tokens are definitely defined.
    """

    def __init__(self, path: Path, why: str, *, may_pass: bool = False, is_there: bool = True) -> None:
        super().__init__(
            f"Named tokens are refused: {path} {why}. Restore a copy of the file, or move it away "
            "and create new tokens (lithos token create)"
        )
        self.why = why
        self.may_pass = may_pass
        self.is_there = is_there


class TokenRefused(Exception):
    """Error for a change that is not possible. The message says why and what to do."""


def read_tokens(private: Path) -> tuple[Token, ...] | None:
    """Return the tokens in the private folder of a data directory, or None if tokens were never required.

    Raises `TokensUnreadable` if tokens are required but cannot be read.
    """
    found = read_token_file(private)
    return None if found is None else found.tokens


def read_token_file(private: Path) -> TokenFile | None:
    """Return the whole token file. Results and errors are as for `read_tokens`."""
    path = private / TOKENS
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as failure:
        # If too many files are open, opening raises the same error for existing and missing files. `stat`
        # needs no descriptor.
        size = _size_of(path)
        if size is not None:
            why = f"cannot be read ({failure.strerror})"
            raise TokensUnreadable(path, why, may_pass=True) from failure
        if _size_of(private / LOCK):
            raise TokensUnreadable(path, "is missing although tokens were defined") from None
        return None
    return _parse(path, data)


def is_released(private: Path) -> bool:
    """Return whether a command has switched off tokens. A lost token file does not count.

    Raises `TokensUnreadable` if the state cannot be read now.
    """
    return _size_of(private / LOCK) == 0


def _size_of(path: Path) -> int | None:
    """Return the size of a file, or None if it is missing.

    Raises `TokensUnreadable` if the size cannot be read now.
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
            raise ValueError(f"the file is larger than {LARGEST} bytes")
        document = json.loads(data)
        if document["version"] not in (_VERSION, _VERSION_WITH_SCOPES, _VERSION_OF_EVERY_VAULT):
            raise ValueError("the file is from another version of Lithos")
        tokens = tuple(map(token_of_row, document["tokens"]))
        if len({token.name for token in tokens}) != len(tokens) or len(tokens) > MOST_TOKENS:
            raise ValueError("the file has duplicate names or too many tokens")
        gone = tuple(document.get("gone", ()))
        if not all(isinstance(digest, str) and DIGEST.fullmatch(digest) for digest in gone):
            raise ValueError("no hashes")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        # The message does not quote a damaged file, because the file may contain secrets.
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
    """Return a new token, which is not stored yet, and its secret. Raises `TokenRefused`."""
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
    """A store for the tokens of a data directory.

    The store works with and without a running server. All methods may block.
    """

    def __init__(self, private: Path) -> None:
        """Store the tokens in `private`, the `.lithos` folder of the data directory."""
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
        """Create a token.

        Return it with its secret, which is not stored. `scope` limits what the token can change.

        If `create` raises `TokenRefused`, `TokensUnreadable` or `OSError`, no token was created.
        """
        token, secret = make_token(name, rights, agent, now, expires_at, scope)
        self.insert(token)
        return token, secret

    def insert(self, token: Token) -> bool:
        """Add a token.

        Return whether it is the first token that was ever added. Raises the errors of `create`.
        """

        def decide(known: TokenFile) -> TokenFile:
            if any(each.name == token.name for each in known.tokens):
                raise TokenRefused(
                    f"The token '{token.name}' already exists, and its secret cannot be shown "
                    "again. Choose another name, or revoke the token first: lithos token revoke "
                    f"{token.name}"
                )
            if len(known.tokens) >= MOST_TOKENS:
                raise TokenRefused(
                    f"The limit of {MOST_TOKENS:,} tokens is reached. Revoke expired tokens first."
                )
            return TokenFile((*known.tokens, token), known.gone)

        return self.exchange(decide)

    def require(self) -> bool:
        """Require tokens from now on, even if no token exists.

        Return whether no token was ever defined before.

        Raises the errors of `create`.
        """
        return self.exchange(lambda known: known)

    def exchange(self, decide: Callable[[TokenFile], TokenFile]) -> bool:
        """Replace or create the file with the result of `decide`. Return whether the file was missing before.

        Raises the errors of `create` and of `decide`. After an error the file is unchanged.
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
                    os.ftruncate(lock, 0)  # no token was defined before, so no token is required
                raise
        return known is None

    def revoke(self, name: str) -> tuple[Token, int]:
        """Revoke a token.

        Return the token and the number of remaining tokens. Raises the errors of `create`.
        """
        with self._locked() as lock:
            known = self._known() or TokenFile()
            tokens = known.tokens
            found = next((each for each in tokens if each.name == name), None)
            if found is None:
                names = ", ".join(each.name for each in tokens[:20]) or "none"
                # The message does not quote the argument, because the argument may be the secret itself.
                raise TokenRefused(f"No token has that name. Existing tokens: {names}.")
            _require(lock)
            left = tuple(each for each in tokens if each is not found)
            gone = (*known.gone, found.digest)[-MOST_GONE:] if found.every_vault else known.gone
            self._write(TokenFile(left, gone))
        return found, len(left)

    def change(self, decide: Callable[[tuple[Token, ...]], tuple[Sequence[Token], T]]) -> T:
        """Replace the tokens with the result of `decide` in one atomic step.

        Return the second result of `decide`.

        Raises `TokenRefused` for too many tokens, `TokensUnreadable` and `OSError`.
        """
        with self._locked() as lock:
            known = self._known() or TokenFile()
            left, said = decide(known.tokens)
            if len(left) > MOST_TOKENS:
                raise TokenRefused(f"The limit of {MOST_TOKENS:,} tokens is reached.")
            if tuple(left) != known.tokens:
                _check_room(left)
                _require(lock)
                self._write(TokenFile(tuple(left), known.gone))
        return said

    def stop_asking(self) -> None:
        """Open the server to all callers again, as before the first token.

        Raises `TokenRefused` while tokens exist, `TokensUnreadable` and `OSError`.
        """
        with self._locked() as lock:
            if (known := self._known()) is not None and known.tokens:
                raise TokenRefused("Tokens still exist. Revoke them first (lithos token list shows them).")
            self.path.unlink(missing_ok=True)
            sync_folder(self._private)
            os.ftruncate(lock, 0)
            os.fsync(lock)

    def _known(self) -> TokenFile | None:
        """Return the tokens. A missing file counts as empty, and the next created token restores the file."""
        try:
            return read_token_file(self._private)
        except TokensUnreadable:
            if not self.path.exists():
                return TokenFile()
            raise

    def _write(self, left: TokenFile) -> None:
        """Replace the file durably with the tokens in `left`."""
        rows = [row_of_token(token) for token in left.tokens]
        has_scopes = any(token.scope is not None for token in left.tokens)
        version = _VERSION_WITH_SCOPES if has_scopes else _VERSION
        if left.gone or any(token.every_vault for token in left.tokens):
            version = _VERSION_OF_EVERY_VAULT
        gone = {"gone": list(left.gone)} if left.gone else {}
        replace_private(self.path, {"version": version, "tokens": rows, **gone})

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Open and lock the lock file. A second command waits for the lock."""
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
                f"{data} is not a data directory, so it has no tokens. Name the data directory "
                "with --data-dir."
            ) from None


def _require(lock: int) -> None:
    """Record that tokens are required from now on. This is called before the first token is stored."""
    if os.fstat(lock).st_size != len(_REQUIRED):
        overwrite(lock, _REQUIRED)
        os.fsync(lock)


def _check_room(tokens: Sequence[Token]) -> None:
    """Raise `TokenRefused` if the scopes of these tokens are too large for the file."""
    if size_of_scopes(token.scope for token in tokens) > LARGEST_SCOPES:
        raise TokenRefused(
            "The patterns of all tokens together exceed the size limit. Use fewer or shorter "
            "patterns, such as folders/, or revoke unneeded tokens."
        )
