"""Tokens for several vaults. Only the token file of a vault decides about access to that vault.

Specified in docs/spec/integration.md §3.1. The hash of a secret is stored in the file of each vault in which
the token is valid. As soon as one token exists, all vaults require a token. Otherwise callers without a token
would get access to the vaults that have no tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from attrs import evolve, field, frozen

from lithos.access.files.tokens import (
    MOST_GONE,
    MOST_TOKENS,
    Token,
    TokenFile,
    TokenRefused,
    TokenStore,
    TokensUnreadable,
    read_token_file,
)
from lithos.kernel.log import get_logger

log = get_logger("lithos.tokens")

#: Errors that a change of one token file may raise.
FAILURES: Final = (TokenRefused, TokensUnreadable, OSError)


@frozen
class VaultToken:
    """A token, and the vaults in which it is valid, in the order of the vaults."""

    token: Token
    vaults: tuple[str, ...]


@frozen
class DiscoveredTokens:
    """The tokens of several vaults, and the vaults with unusable token files, with the reasons."""

    tokens: tuple[VaultToken, ...]
    #: Whether any vault requires a token. If so, all vaults require a token.
    is_required: bool
    troubles: Mapping[str, str] = field(factory=dict)


def find_tokens(privates: Mapping[str, Path]) -> DiscoveredTokens:
    """Return all tokens of the vaults in `privates`.

    If a token has different properties in different vaults, each variant is returned once. Blocks.
    """
    vaults: dict[Token, list[str]] = {}
    troubles: dict[str, str] = {}
    is_required = False
    for vault, private in privates.items():
        try:
            file = read_token_file(private)
        except TokensUnreadable as failure:
            troubles[vault] = str(failure)
            is_required = True
            continue
        is_required = is_required or file is not None
        for token in () if file is None else file.tokens:
            vaults.setdefault(token, []).append(vault)
    tokens = tuple(VaultToken(token, tuple(names)) for token, names in vaults.items())
    return DiscoveredTokens(tokens, is_required, troubles)


def insert_token(token: Token, chosen: Mapping[str, Path], others: Mapping[str, Path]) -> None:
    """Add a token to the chosen vaults, and require tokens in all others.

    If a vault fails, the change is undone.

    `others` are all other configured vaults. Raises `TokenRefused`, which names the failed vault and any
    vaults from which the token could not be removed again. Blocks.
    """
    done: list[tuple[str, TokenStore, bool, bool]] = []
    for vault, private in (*chosen.items(), *others.items()):
        store, is_chosen = TokenStore(private), vault in chosen
        try:
            is_first = store.insert(token) if is_chosen else store.require()
        except FAILURES as failure:
            left = list(_take_back(token, done))
            kept = f" The token could not be removed from {', '.join(left)}: revoke it there." if left else ""
            raise TokenRefused(
                f"In vault {vault}: {_said(failure)} No vault accepts the token.{kept}"
            ) from failure
        done.append((vault, store, is_chosen, is_first))


def _take_back(token: Token, done: Iterable[tuple[str, TokenStore, bool, bool]]) -> Iterator[str]:
    """Restore the token file of each vault. Yield the vaults in which that failed."""
    for vault, store, is_chosen, is_first in done:
        try:
            if is_chosen:
                store.exchange(lambda known: _without(known, token))
            if is_first:
                store.stop_asking()
        except FAILURES as failure:
            log.error("added token not removed", vault=vault, reason=str(failure))
            yield vault


def _without(known: TokenFile, token: Token) -> TokenFile:
    return evolve(known, tokens=tuple(each for each in known.tokens if each.digest != token.digest))


def revoke_token(name: str, privates: Mapping[str, Path]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Revoke a token. Return the vaults in which it was revoked, and the failed vaults with the reasons.

    Raises `TokenRefused` if no vault has the token and every vault could be checked. Blocks.
    """
    revoked: list[str] = []
    troubles: dict[str, str] = {}
    names: dict[str, None] = {}
    for vault, private in privates.items():
        try:
            file = read_token_file(private) or TokenFile()
            if any(token.name == name for token in file.tokens):
                TokenStore(private).revoke(name)
                revoked.append(vault)
            names.update(dict.fromkeys(token.name for token in file.tokens))
        except FAILURES as failure:
            troubles[vault] = _said(failure)
    if not revoked and not troubles:
        # The message does not quote the argument, because the argument may be the secret itself.
        known = ", ".join([*names][:20]) or "none"
        raise TokenRefused(f"No token in {', '.join(privates)} has that name. Existing tokens: {known}.")
    return tuple(revoked), troubles


def open_all(privates: Mapping[str, Path]) -> None:
    """Stop requiring tokens in all vaults.

    Raises `TokenRefused` if a vault still has tokens, like `stop_asking`.
    """
    found = find_tokens(privates)
    if found.tokens or found.troubles:
        vaults = sorted({name for each in found.tokens for name in each.vaults} | set(found.troubles))
        raise TokenRefused(
            f"Tokens still exist in {', '.join(vaults)}. Revoke them first (lithos token list shows them)."
        )
    for private in privates.values():
        if private.is_dir():
            TokenStore(private).stop_asking()


def spread_tokens(privates: Sequence[Path]) -> tuple[str, ...]:
    """Synchronise the tokens of all vaults when a server starts.

    `privates` are their `.lithos` folders. Blocks.

    Tokens of every vault are added to vaults that lack them, unless they were revoked. If one vault has
    tokens, all vaults require tokens. If there are no tokens, no file is created. Return messages about
    failures. A failed vault stays unchanged, and if its file is unreadable, it refuses named tokens.
    """
    files: dict[Path, TokenFile | None] = {}
    troubles: list[str] = []
    are_defined = False
    for private in privates:
        try:
            files[private] = read_token_file(private)
        except TokensUnreadable as failure:
            troubles.append(str(failure))
            are_defined |= failure.is_there
    known = [file for file in files.values() if file is not None]
    if not known and not are_defined:
        return tuple(troubles)
    gone = tuple(dict.fromkeys(digest for file in known for digest in file.gone))
    every = {
        token.digest: token
        for file in known
        for token in file.tokens
        if token.every_vault and token.digest not in gone
    }
    for private in files:
        try:
            TokenStore(private).exchange(lambda file: _spread(file, tuple(every.values()), gone))
            held = read_token_file(private) or TokenFile()
        except FAILURES as failure:
            troubles.append(_said(failure))
            continue
        taken = {token.name: token.digest for token in held.tokens}
        troubles += [
            f"The token '{token.name}' of every vault was not added to {private.parent}, which "
            "has another token of this name or no space. Revoke that token there, and restart."
            for token in every.values()
            if taken.get(token.name) != token.digest
        ]
    for trouble in troubles:
        log.warning("token not added to all vaults", reason=trouble)
    return tuple(troubles)


def _spread(file: TokenFile, every: Sequence[Token], gone: Sequence[str]) -> TokenFile:
    """Return the file with the missing tokens of every vault (as far as they fit), without revoked tokens."""
    kept = [token for token in file.tokens if not (token.every_vault and token.digest in gone)]
    names = {token.name for token in kept}
    lacking = [token for token in every if token.name not in names][: max(0, MOST_TOKENS - len(kept))]
    remembered = tuple(dict.fromkeys((*file.gone, *gone)))[-MOST_GONE:]
    return TokenFile((*kept, *lacking), remembered)


def _said(failure: Exception) -> str:
    """Return the message of an error as a sentence."""
    told = failure.strerror or str(failure) if isinstance(failure, OSError) else str(failure)
    place = f" ({failure.filename})" if isinstance(failure, OSError) and failure.filename else ""
    return f"{told.rstrip('.')}{place}."
