"""Tokens of several vaults. Each vault has its own token file.

A change applies to all vaults or to none (docs/spec/integration.md §3.1).
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lithos.access.files.tokens import (
    TOKENS,
    Token,
    TokenRefused,
    TokenStore,
    TokensUnreadable,
    make_token,
    read_token_file,
    read_tokens,
)
from lithos.access.service.vault_tokens import (
    find_tokens,
    insert_token,
    open_all,
    revoke_token,
    spread_tokens,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def privates(tmp_path: Path) -> dict[str, Path]:
    return {name: tmp_path / name / ".lithos" for name in ("work", "home", "old")}


def made(name: str = "ci", *, every: bool = False) -> Token:
    return make_token(name, "write", None, NOW, None, every_vault=every)[0]


def names(private: Path) -> list[str] | None:
    tokens = read_tokens(private)
    return None if tokens is None else [token.name for token in tokens]


def only(privates: dict[str, Path], *names: str) -> dict[str, Path]:
    return {name: privates[name] for name in names}


def test_token_is_added_to_chosen_vaults_and_closes_all_vaults(privates: dict[str, Path]) -> None:
    token = made()
    insert_token(token, only(privates, "work", "home"), only(privates, "old"))
    assert [names(private) for private in privates.values()] == [["ci"], ["ci"], []]
    (found,) = find_tokens(privates).tokens
    assert (found.token, found.vaults) == (token, ("work", "home"))


def test_failure_in_one_vault_leaves_the_other_vaults_unchanged(privates: dict[str, Path]) -> None:
    TokenStore(privates["home"]).create("other", "read", None, NOW, None)
    (privates["old"]).mkdir(parents=True)
    (privates["old"] / TOKENS).write_text("damage")
    with pytest.raises(TokenRefused, match=r"In vault old: .*damaged.*No vault accepts the token"):
        insert_token(made(), privates, {})
    assert names(privates["work"]) is None
    assert names(privates["home"]) == ["other"]


def test_failed_rollback_is_reported(privates: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    TokenStore(privates["home"]).create("ci", "read", None, NOW, None)
    exchange = TokenStore.exchange

    def fails_later(store: TokenStore, decide: object) -> bool:
        if read_tokens(store.path.parent) and store.path.parent == privates["work"]:
            raise OSError(28, "No space left on device", str(store.path))
        return exchange(store, decide)  # type: ignore[arg-type]

    monkeypatch.setattr(TokenStore, "exchange", fails_later)
    with pytest.raises(TokenRefused, match=r"In vault home: The token.*could not be removed from work"):
        insert_token(made(), only(privates, "work", "home"), {})


def test_token_is_revoked_in_every_vault(privates: dict[str, Path]) -> None:
    insert_token(made(), only(privates, "work", "home"), {})
    privates["old"].mkdir(parents=True)
    (privates["old"] / TOKENS).write_text("damage")
    revoked, troubles = revoke_token("ci", privates)
    assert (revoked, list(troubles)) == (("work", "home"), ["old"])
    with pytest.raises(TokenRefused, match="No token in work, home has that name"):
        revoke_token("ci", only(privates, "work", "home"))


def test_file_with_tokens_for_every_vault_has_its_own_version(privates: dict[str, Path]) -> None:
    work = privates["work"]
    TokenStore(work).insert(made(every=True))
    assert json.loads((work / TOKENS).read_text())["version"] == 3
    file = read_token_file(work)
    assert file is not None
    assert file.tokens[0].every_vault
    TokenStore(work).revoke("ci")
    assert json.loads((work / TOKENS).read_text())["version"] == 3  # version 3 also stores the revoked token
    (work / TOKENS).write_text('{"version": 3, "tokens": [], "gone": ["x"]}')
    with pytest.raises(TokensUnreadable):
        read_tokens(work)


def test_vault_added_later_gets_the_tokens_for_every_vault(privates: dict[str, Path]) -> None:
    insert_token(made(every=True), only(privates, "work"), {})
    insert_token(made("own"), only(privates, "work"), {})
    assert spread_tokens(list(privates.values())) == ()
    assert [names(private) for private in privates.values()] == [["ci", "own"], ["ci"], ["ci"]]
    before = [(private / TOKENS).stat().st_mtime_ns for private in privates.values()]
    assert spread_tokens(list(privates.values())) == ()
    assert [(private / TOKENS).stat().st_mtime_ns for private in privates.values()] == before


def test_first_token_closes_all_vaults(privates: dict[str, Path]) -> None:
    assert spread_tokens(list(privates.values())) == ()
    assert not any(private.exists() for private in privates.values())
    TokenStore(privates["home"]).create("ci", "read", None, NOW, None)
    assert spread_tokens(list(privates.values())) == ()
    assert [names(private) for private in privates.values()] == [[], ["ci"], []]


def test_vault_that_returns_does_not_restore_a_revoked_token(privates: dict[str, Path]) -> None:
    insert_token(made(every=True), privates, {})
    revoke_token("ci", only(privates, "work", "home"))
    assert names(privates["old"]) == ["ci"]
    assert spread_tokens(list(privates.values())) == ()
    assert [names(private) for private in privates.values()] == [[], [], []]
    insert_token(made(every=True), only(privates, "work"), {})  # a new token with the revoked name
    assert spread_tokens(list(privates.values())) == ()
    assert names(privates["old"]) == ["ci"]


def test_vault_that_cannot_store_a_token_is_reported(privates: dict[str, Path]) -> None:
    insert_token(made(every=True), only(privates, "work"), {})
    TokenStore(privates["home"]).create("ci", "read", None, NOW, None)
    privates["old"].mkdir(parents=True)
    (privates["old"] / TOKENS).write_text("damage")
    damaged, doubled = spread_tokens(list(privates.values()))
    assert "damaged" in damaged
    assert f"not added to {privates['home'].parent}" in doubled
    assert (privates["old"] / TOKENS).read_text() == "damage"


def test_all_vaults_are_opened_together_once_no_token_is_left(privates: dict[str, Path]) -> None:
    insert_token(made(), only(privates, "work"), only(privates, "home"))
    with pytest.raises(TokenRefused, match="Tokens still exist in work"):
        open_all(privates)
    revoke_token("ci", privates)
    open_all(privates)
    assert [names(private) for private in privates.values()] == [None, None, None]
