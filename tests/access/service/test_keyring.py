"""Tokens of a running server: valid tokens, invalid tokens, and errors. No error may open the server."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import evolve

from lithos.access.files.tokens import LOCK, TOKENS, TokenStore
from lithos.access.model.claims import principal_of
from lithos.access.service.keyring import EVERY, NOTHING, TokenRing
from lithos.kernel.actors.threads import Inline
from lithos.kernel.values.principals import ANYONE, COMMAND, OWNER, Principal
from lithos.notes.model.scopes import Scope
from lithos.server.tools.token_ports import AUTH_TOKEN, OneToken
from tests.fakes import Clock

pytestmark = pytest.mark.autojump
BOUND = 2.0


@pytest.fixture
def private(tmp_path: Path) -> Path:
    folder = tmp_path / ".lithos"
    folder.mkdir()
    return folder


@asynccontextmanager
async def running(private: Path, auth_token: str | None = None) -> AsyncIterator[tuple[TokenRing, Clock]]:
    clock = Clock()
    ring = TokenRing(private, clock, auth_token, looking=Inline())
    async with trio.open_nursery() as nursery:
        await nursery.start(ring.run)
        yield ring, clock
        nursery.cancel_scope.cancel()


def create(private: Path, name: str = "ci", agent: str | None = None, **life: float) -> bytes:
    now = Clock()()
    end = now + timedelta(**life) if life else None
    return TokenStore(private).create(name, "write", agent, now, end)[1].encode()


async def changed(ring: TokenRing) -> None:
    """Wait until a token change applies. Fail after the promised time (behaviour 248)."""
    with trio.fail_after(BOUND):
        await ring.wait_changed()


async def test_all_callers_are_admitted_until_the_first_token(private: Path) -> None:
    async with running(private) as (ring, _):
        assert ring.is_open
        assert ring.is_valid(ANYONE)
        assert ring.find(ring.own_token.encode()) == OWNER
        secret = create(private)
        await changed(ring)
        assert not ring.is_open
        assert not ring.is_valid(ANYONE)
        assert ring.find(b"wrong") is None
        assert ring.find(b"") is None
        found = ring.find(secret)
        assert found is not None
        assert (found.name, found.rights, found.agent) == ("ci", "write", None)
        assert ring.is_valid(found)
        assert ring.is_valid(OWNER)


async def test_keyring_admits_no_caller_before_it_has_read_the_file(private: Path) -> None:
    ring = TokenRing(private, Clock())
    assert not ring.is_open
    assert ring.find(ring.own_token.encode()) == OWNER


async def test_configured_token_has_full_access_next_to_named_tokens(private: Path) -> None:
    secret = create(private)
    async with running(private, "s3cret") as (ring, _):
        assert not ring.is_open
        assert ring.find(b"s3cret") == AUTH_TOKEN
        assert AUTH_TOKEN.may("admin")
        assert ring.find(secret) is not None
        assert "s3cret" not in repr(ring.__dict__)
        assert ring.own_token not in repr(ring.find(secret))


async def test_revoked_token_is_refused_and_the_server_stays_closed(private: Path) -> None:
    """behaviour 248"""
    secret = create(private)
    async with running(private) as (ring, _):
        found = ring.find(secret)
        assert found is not None
        TokenStore(private).revoke("ci")
        await changed(ring)
        assert ring.find(secret) is None
        assert not ring.is_valid(found)
        assert not ring.is_open
        assert ring.named == ()
        TokenStore(private).stop_asking()
        await changed(ring)
        assert ring.is_open


async def test_new_token_does_not_replace_a_token_of_equal_name(private: Path) -> None:
    secret = create(private)
    async with running(private) as (ring, _):
        before = ring.find(secret)
        assert before is not None
        TokenStore(private).revoke("ci")
        create(private)
        await changed(ring)
        assert not ring.is_valid(before)
        assert before.name == "ci"
        assert before.agent is None


def scoped(private: Path, scope: Scope | None, name: str = "ci") -> bytes:
    return TokenStore(private).create(name, "write", None, Clock()(), None, scope)[1].encode()


async def test_changed_scope_applies_to_an_existing_token(private: Path) -> None:
    """behaviour 278: the changed scope also applies to a call that was admitted before the change."""
    narrow, wide = Scope(("a/",), ()), Scope(("a/", "b/"), ("**",))
    secret, free = scoped(private, narrow), scoped(private, None, "free")
    async with running(private, "s3cret") as (ring, _):
        found, other = ring.find(secret), ring.find(free)
        assert found is not None
        assert other is not None
        assert (ring.scope_of(found), ring.scope_of(other)) == (narrow, None)
        TokenStore(private).change(
            lambda tokens: ([evolve(each, scope=wide) for each in tokens if each.name == "ci"], None)
        )
        await changed(ring)
        assert ring.scope_of(found) == wide
        assert ring.scope_of(evolve(found, is_person=True)) == wide
        assert ring.scope_of(other) == NOTHING  # revoked
        assert [ring.scope_of(each) for each in (OWNER, COMMAND, AUTH_TOKEN, ANYONE)] == [None] * 4


async def test_replaced_or_unreadable_token_cannot_change_anything(private: Path) -> None:
    """A replaced or unreadable token must not count as unlimited.

    The token of a call that waits in a queue must not count as unlimited either.
    """
    secret = scoped(private, Scope(("a/",), ()))
    async with running(private) as (ring, _):
        before = ring.find(secret)
        assert before is not None
        TokenStore(private).revoke("ci")
        later = scoped(private, None)
        await changed(ring)
        after = ring.find(later)
        assert after is not None
        assert (ring.scope_of(before), ring.scope_of(after)) == (NOTHING, None)
        (private / TOKENS).write_text("{")
        await changed(ring)
        assert ring.scope_of(after) == NOTHING
        assert NOTHING.place_of("a/b.md") == "outside"


async def test_foreign_token_has_no_scope_of_its_own(private: Path) -> None:
    """The scope of the token's agent in the configuration applies instead."""
    async with running(private) as (ring, _):
        claims = {"sub": "ann", "scope": "write"}
        foreign = principal_of(claims, "scope", {"write": "write"})
        assert ring.scope_of(foreign) is None


async def test_token_is_refused_when_it_expires(private: Path) -> None:
    """behaviour 248"""
    secret = create(private, hours=1)
    async with running(private) as (ring, clock):
        found = ring.find(secret)
        assert found is not None
        assert ring.is_valid(found)
        clock.advance(3_599)
        assert ring.find(secret) == found
        clock.advance(1)
        assert ring.find(secret) is None
        assert not ring.is_valid(found)
        await changed(ring)
        assert not ring.is_open


async def test_token_expired_by_a_wrong_clock_is_valid_after_correction(
    private: Path,
) -> None:
    secret = create(private, hours=1)
    async with running(private) as (ring, clock):
        found = ring.find(secret)
        clock.advance(400 * 86_400)
        await changed(ring)
        assert ring.find(secret) is None
        clock.advance(-400 * 86_400)
        assert ring.find(secret) == found
        await trio.sleep(BOUND)
        clock.advance(3_600)
        await changed(ring)
        assert ring.find(secret) is None


@pytest.mark.parametrize("fault", ["removed", "damaged", "both removed", "folder removed", "unreadable"])
async def test_server_without_its_token_file_stays_closed(private: Path, fault: str) -> None:
    """behaviour 248"""
    secret = create(private)
    async with running(private) as (ring, _):
        found = ring.find(secret)
        assert found is not None
        break_tokens(private, fault)
        await changed(ring)
        assert ring.find(secret) is None
        assert not ring.is_valid(found)
        assert not ring.is_open
        assert ring.trouble is not None
        assert "lithos token create" in ring.trouble
        assert ring.announcement == f"{ring.trouble}."
        assert ring.find(ring.own_token.encode()) == OWNER


@pytest.mark.parametrize("fault", ["removed", "damaged", "unreadable"])
async def test_server_starts_closed_when_its_token_file_is_lost(private: Path, fault: str) -> None:
    """behaviour 248"""
    secret = create(private)
    break_tokens(private, fault)
    async with running(private) as (ring, _):
        assert not ring.is_open
        assert ring.find(secret) is None
        assert ring.trouble is not None
        if fault != "removed":
            shutil.rmtree(private / TOKENS, ignore_errors=True)
            (private / TOKENS).unlink(missing_ok=True)
        mended = create(private, "other")
        await changed(ring)
        assert ring.find(mended) is not None
        assert ring.trouble is None


def out_of_files(monkeypatch: pytest.MonkeyPatch, *, looks_fail: bool = False) -> None:
    """Simulate too many open files. No file can be opened, even if it does not exist."""

    def refuse(path: Path, *_: object, **__: object) -> Any:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))

    monkeypatch.setattr(Path, "open", refuse)
    if looks_fail:
        monkeypatch.setattr(Path, "stat", refuse)


@pytest.mark.parametrize("looks_fail", [False, True])
@pytest.mark.parametrize("is_started", [False, True])
async def test_server_without_tokens_is_open_after_running_out_of_files(
    private: Path, monkeypatch: pytest.MonkeyPatch, is_started: bool, looks_fail: bool
) -> None:
    """behaviour 393: the unreadable file is read again, and it defines no tokens."""
    with monkeypatch.context() as patching:
        if not is_started:
            out_of_files(patching, looks_fail=looks_fail)
        async with running(private) as (ring, _):
            out_of_files(patching, looks_fail=looks_fail)
            await ring.follow()
            assert ring.is_open is not looks_fail
            patching.undo()
            with trio.fail_after(30):
                while not ring.is_open:
                    await trio.sleep(EVERY)
            assert ring.trouble is None


async def test_tokens_are_accepted_again_after_running_out_of_files(
    private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 393: no caller is admitted until the file can be read again.

    The file looks unchanged meanwhile.
    """
    secret = create(private)
    async with running(private) as (ring, _):
        with monkeypatch.context() as patching:
            out_of_files(patching)
            await ring.follow()
            assert ring.find(secret) is None
            assert not ring.is_open
        with trio.fail_after(30):
            while ring.find(secret) is None:
                await trio.sleep(EVERY)
        (private / TOKENS).unlink()
        await changed(ring)
        assert not ring.is_open, "tokens were defined"


def break_tokens(private: Path, fault: str) -> None:
    if fault == "damaged":
        (private / TOKENS).write_text("{")
    elif fault == "folder removed":
        shutil.rmtree(private)
    else:
        (private / TOKENS).unlink()
        if fault == "both removed":
            (private / LOCK).unlink()
        if fault == "unreadable":  # a folder cannot be read as a file, even by root
            (private / TOKENS).mkdir()


async def test_startup_log_contains_the_number_of_tokens(private: Path) -> None:
    async with running(private) as (ring, _):
        assert ring.announcement is None
    create(private, "a", hours=1)
    create(private, "b")
    async with running(private) as (ring, clock):
        assert ring.announcement == "Named tokens: 2"
        clock.advance(3_600)
        assert ring.announcement == "Named tokens: 2, 1 of them expired"


def test_single_configured_token_is_the_only_valid_token() -> None:
    some, none = OneToken("s3cret"), OneToken(None)
    assert some.find(b"s3cret") == AUTH_TOKEN
    assert some.find(b"wrong") is None
    assert some.is_valid(AUTH_TOKEN)
    assert not some.is_valid(ANYONE)
    assert not some.is_open
    assert none.is_open
    assert none.is_valid(ANYONE)
    assert none.find(b"") is None
    assert not none.is_valid(Principal("ci", "read"))
