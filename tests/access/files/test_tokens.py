"""The file of named tokens. It contains only hashes and has mode 0600 (behaviour 248)."""

from __future__ import annotations

import json
import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import lithos.access.files.tokens
from lithos.access.files.tokens import (
    LARGEST,
    LARGEST_SCOPES,
    LOCK,
    LONGEST_NAME,
    MOST_TOKENS,
    TOKENS,
    TokenRefused,
    TokenStore,
    TokensUnreadable,
    digest_of,
    is_released,
    read_tokens,
)
from lithos.notes.model.scopes import Scope

NOW = datetime(2026, 3, 4, 5, 6, 7, 8, tzinfo=UTC)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    return tmp_path / "data" / ".lithos"


@pytest.fixture
def store(private: Path) -> TokenStore:
    return TokenStore(private)


def test_token_is_stored_as_a_hash_in_owner_only_file(store: TokenStore, private: Path) -> None:
    """behaviour 248"""
    token, secret = store.create("ci", "read", "bot", NOW, NOW + timedelta(days=1))
    assert len(secret) >= 43
    assert secret.startswith("lithos_")
    assert read_tokens(private) == (token,)
    assert token.digest == digest_of(secret.encode())
    assert (token.name, token.rights, token.agent) == ("ci", "read", "bot")
    assert not token.has_expired(NOW)
    assert token.has_expired(NOW + timedelta(days=1))
    for path in (private / TOKENS, private / LOCK):
        assert path.stat().st_mode & 0o777 == 0o600
        assert secret.encode() not in path.read_bytes()
    assert sorted(path.name for path in private.iterdir()) == [TOKENS, LOCK]
    assert secret not in repr(token)
    assert token.digest not in repr(token)


def test_revoked_token_is_removed_and_others_are_kept(store: TokenStore, private: Path) -> None:
    kept, _ = store.create("kept", "write", None, NOW, None)
    store.create("lost", "admin", None, NOW, None)
    revoked, left = store.revoke("lost")
    assert (revoked.name, left, read_tokens(private)) == ("lost", 1, (kept,))


def test_token_names_are_unique_and_printable(store: TokenStore) -> None:
    store.create("ci", "read", None, NOW, None)
    with pytest.raises(TokenRefused, match="already"):
        store.create("ci", "admin", None, NOW, None)
    for name in (
        "",
        "-x",
        "x-",
        "a b",
        "a\n",
        "é",
        "owner",
        "auth_token",
        "anyone",
        "x" * (LONGEST_NAME + 1),
    ):
        with pytest.raises(TokenRefused, match="name"):
            store.create(name, "read", None, NOW, None)
    for agent in ("", " x", "a\nb", "x" * 201):
        with pytest.raises(TokenRefused, match="agent id"):
            store.create("fine", "read", agent, NOW, None)
    for name in ("a", "A.b_c-d@e", "x" * LONGEST_NAME):
        store.create(name, "read", None, NOW, None)


@pytest.mark.parametrize(
    "scope",
    [
        Scope(("notes/**", "!notes/plans/"), ("notes/plans/**",)),
        Scope((), ("**",)),
        Scope(("Zürich/", "😀/*.md"), ()),
        Scope((), ()),  # a scope without writes must not be read as unlimited
        Scope(),
    ],
)
def test_scope_is_stored_with_its_token(store: TokenStore, private: Path, scope: Scope) -> None:
    """behaviour 278"""
    token, _ = store.create("ci", "write", "bot", NOW, None, scope)
    other, _ = store.create("all", "write", None, NOW, None)
    assert (token.scope, other.scope) == (scope, None)
    assert read_tokens(private) == (token, other)


def test_file_without_scopes_keeps_its_original_format(store: TokenStore, private: Path) -> None:
    token, _ = store.create("ci", "write", "bot", NOW, None)
    kept = (private / TOKENS).read_bytes()
    assert kept == (
        b'{\n "version": 1,\n "tokens": [\n  {\n   "name": "ci",\n   "hash": "'
        + token.digest.encode()
        + b'",\n'
        b'   "agent": "bot",\n   "rights": "write",\n   "created_at": "2026-03-04T05:06:07.000008+00:00",\n'
        b'   "expires_at": null\n  }\n ]\n}\n'
    )
    store.create("some", "write", None, NOW, None, Scope(("a/",), ()))
    store.revoke("some")
    assert (private / TOKENS).read_bytes() == kept


def test_older_lithos_version_refuses_a_token_file_with_scopes(store: TokenStore, private: Path) -> None:
    """An older version does not know scopes. It would let the token change every note."""
    store.create("ci", "write", None, NOW, None, Scope(("a/",), ()))
    assert json.loads((private / TOKENS).read_text())["version"] == 2


def test_read_only_token_has_no_scope(store: TokenStore, private: Path) -> None:
    with pytest.raises(TokenRefused, match="cannot change notes, so --write"):
        store.create("ci", "read", None, NOW, None, Scope(("a/",), ()))
    assert read_tokens(private) is None


def test_total_size_of_token_scopes_is_limited(store: TokenStore, private: Path) -> None:
    """Uses the longest patterns, which become twelve times as long in JSON. The file must remain readable."""
    wide = tuple("\U0001f600" * 496 + f"{number:02}/" for number in range(100))
    grown = Scope(wide, wide)
    store.create("first", "write", None, NOW, None, grown)
    whole = (private / TOKENS).stat().st_size
    fitting = LARGEST_SCOPES // whole
    for number in range(1, fitting):
        store.create(f"t{number}", "write", None, NOW, None, grown)
    refused = False
    for number in range(3):
        try:
            store.create(f"more{number}", "write", None, NOW, None, grown)
        except TokenRefused as refusal:
            refused = "exceed the size limit" in str(refusal)
    assert refused
    kept = read_tokens(private) or ()
    assert fitting <= len(kept) <= fitting + 1
    assert (private / TOKENS).stat().st_size < LARGEST
    store.create("none", "write", None, NOW, None)  # a token without a scope needs no space


def test_invalid_token_name_is_not_repeated_in_the_error(store: TokenStore) -> None:
    _, secret = store.create("ci", "read", None, NOW, None)
    with pytest.raises(TokenRefused, match="Existing tokens: ci") as refusal:
        store.revoke(secret)
    assert secret not in str(refusal.value)


def test_number_of_tokens_is_limited(store: TokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_TOKENS == 1_000
    monkeypatch.setattr(lithos.access.files.tokens, "MOST_TOKENS", 2)
    store.create("a", "read", None, NOW, None)
    store.create("b", "read", None, NOW, None)
    with pytest.raises(TokenRefused, match="is reached"):
        store.create("c", "read", None, NOW, None)


def test_server_without_its_last_token_is_reopened_only_by_command(store: TokenStore, private: Path) -> None:
    """A server that lost its last token stays closed. A server that never had a token is open."""
    assert read_tokens(private) is None
    store.create("ci", "read", None, NOW, None)
    with pytest.raises(TokenRefused, match="Revoke them first"):
        store.stop_asking()
    store.revoke("ci")
    assert read_tokens(private) == ()
    assert not is_released(private)
    store.stop_asking()
    assert read_tokens(private) is None
    assert is_released(private)
    store.create("ci", "read", None, NOW, None)
    assert not is_released(private)


def test_removed_token_file_differs_from_a_file_never_created(store: TokenStore, private: Path) -> None:
    """behaviour 248"""
    store.create("ci", "read", None, NOW, None)
    (private / TOKENS).unlink()
    with pytest.raises(TokensUnreadable, match="is missing"):
        read_tokens(private)
    again, _ = store.create("ci", "read", None, NOW, None)  # the error message recommends this command
    assert read_tokens(private) == (again,)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b'{"version": 4, "tokens": []}',
        b'{"version": 1}',
        b'{"version": 1, "tokens": [{}]}',
        b'{"version": 1, "tokens": [1]}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"version": 1, "tokens": null}',
    ],
)
def test_damaged_token_file_is_refused_without_quoting_it(
    store: TokenStore, private: Path, damage: bytes
) -> None:
    """behaviour 248"""
    store.create("ci", "read", None, NOW, None)
    (private / TOKENS).write_bytes(damage)
    with pytest.raises(TokensUnreadable, match="is damaged"):
        read_tokens(private)
    with pytest.raises(TokensUnreadable):
        store.create("more", "read", None, NOW, None)
    assert (private / TOKENS).read_bytes() == damage


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rights", "root"),
        ("hash", "abc"),
        ("name", "a b"),
        ("name", None),
        ("agent", 7),
        ("agent", ""),
        ("expires_at", "tomorrow"),
        ("created_at", None),
        ("write", None),
        ("write", "notes/**"),
        ("write", [1]),
        ("write", ["/etc"]),
        ("write", ["!notes/"]),
        ("write", ["x" * 501]),
        ("propose", {}),
        ("propose", [""]),
        ("propose", ["a"] * 101),
    ],
)
def test_token_file_with_one_invalid_value_is_unreadable(
    store: TokenStore, private: Path, key: str, value: object
) -> None:
    store.create("ci", "read", None, NOW, None)
    document = json.loads((private / TOKENS).read_text())
    document["tokens"][0][key] = value
    (private / TOKENS).write_text(json.dumps(document))
    with pytest.raises(TokensUnreadable):
        read_tokens(private)


def test_folder_at_the_token_file_path_is_unreadable(store: TokenStore, private: Path) -> None:
    store.create("ci", "read", None, NOW, None)
    (private / TOKENS).unlink()
    (private / TOKENS).mkdir()
    with pytest.raises(TokensUnreadable, match="cannot be read"):
        read_tokens(private)


def test_failed_creation_of_the_first_token_leaves_server_open(
    store: TokenStore, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        store.create("ci", "read", None, NOW, None)
    assert read_tokens(private) is None
    assert [path.name for path in private.iterdir()] == [LOCK]


def test_concurrent_token_creations_lose_no_token(private: Path) -> None:
    def create(number: int) -> None:
        for each in range(5):
            TokenStore(private).create(f"t{number}.{each}", "read", None, NOW, None)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {token.name for token in read_tokens(private) or ()} == {
        f"t{number}.{each}" for number in range(4) for each in range(5)
    }
