"""Lifetime of a grant: codes, access tokens, refresh tokens, and clock jumps."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta

import pytest
from attrs import evolve

from lithos.access.model.grants import MOST_ACCESS, Code, Issued, OAuthGrant
from lithos.access.model.requests import (
    OAuthRefused,
    is_verified,
    read_parameters,
    read_resource,
    read_scopes,
)

NOW = datetime(2026, 3, 4, tzinfo=UTC)
VERIFIER = "v" * 50
CHALLENGE = urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
RIGHT = ("client", "https://a.example/cb", VERIFIER, None)
GRANT = OAuthGrant(
    "client", "A client", "https://me.example/mcp",
    Code("code", NOW + timedelta(seconds=60), "https://a.example/cb", CHALLENGE), NOW,
)  # fmt: skip


def seconds(number: float) -> datetime:
    return NOW + timedelta(seconds=number)


@pytest.mark.parametrize("at", [0, 59.9])
def test_code_is_valid_for_a_minute(at: float) -> None:
    """behaviour 273"""
    GRANT.redeem(*RIGHT, seconds(at))
    assert not GRANT.has_ended(seconds(at))


@pytest.mark.parametrize("at", [60, 3_600, -2, -86_400])
def test_code_is_refused_after_expiry_and_after_a_clock_setback(at: float) -> None:
    with pytest.raises(OAuthRefused, match="expired"):
        GRANT.redeem(*RIGHT, seconds(at))
    assert GRANT.has_ended(seconds(at))


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (("other", *RIGHT[1:]), "invalid_grant"),
        (("client", "https://a.example/cb2", VERIFIER, None), "invalid_grant"),
        (("client", "https://a.example/cb", "w" * 50, None), "invalid_grant"),
        (("client", "https://a.example/cb", CHALLENGE, None), "invalid_grant"),
        (("client", "https://a.example/cb", "", None), "invalid_grant"),
        ((*RIGHT[:3], "https://other.example/mcp"), "invalid_target"),
    ],
)
def test_code_is_bound_to_client_redirect_challenge_and_resource(
    given: tuple[str, str, str, str | None], error: str
) -> None:
    """behaviour 272: a code cannot be injected into another flow."""
    with pytest.raises(OAuthRefused) as refused:
        GRANT.redeem(*given, NOW)
    assert refused.value.error == error


def test_access_token_is_valid_for_one_hour() -> None:
    (access,) = GRANT.issuing(Issued("a", "r", "f"), NOW).access
    assert [access.is_valid(seconds(at)) for at in (0, 3_599, 3_600, -30, -120)] == [
        True, True, False, True, False,
    ]  # fmt: skip


def test_replaced_refresh_token_may_be_repeated_for_thirty_seconds() -> None:
    first = GRANT.issuing(Issued("a1", "r1", "f"), NOW)
    second = first.issuing(Issued("a2", "r2", "f"), seconds(10))
    assert (second.refresh, second.former) == ("r2", "r1")
    assert [second.may_repeat("r1", seconds(at)) for at in (10, 40, 41, 9)] == [True, True, False, False]
    assert not second.may_repeat("r2", seconds(10))
    for number in range(10):
        second = second.issuing(Issued(f"x{number}", "r", "f"), seconds(20))
    assert len(second.access) == MOST_ACCESS


def test_grant_ends_after_ninety_unused_days() -> None:
    used = evolve(GRANT.issuing(Issued("a", "r", "f"), NOW))
    assert not used.has_ended(NOW + timedelta(days=89))
    assert used.has_ended(NOW + timedelta(days=90))


@pytest.mark.parametrize("verifier", ["short", "v" * 129, "v" * 42, "v" * 49 + "/", "é" * 50])
def test_verifier_must_have_the_specified_form(verifier: str) -> None:
    digest = hashlib.sha256(verifier.encode()).digest()
    assert not is_verified(urlsafe_b64encode(digest).rstrip(b"=").decode(), verifier)


def test_malformed_authorization_requests_are_refused() -> None:
    assert read_parameters("a=1&b=&c=%20") == {"a": "1", "c": " "}
    for text in (
        "a=1&a=2",
        "a=1&a=",
        "&".join(f"a{number}=1" for number in range(50)),
        "a=%ff",
        "a=" + "x" * 3_000,
    ):
        with pytest.raises(OAuthRefused, match="parameter"):
            read_parameters(text)
    assert read_scopes(None) == ("read", "write") == read_scopes("write offline_access read")
    with pytest.raises(OAuthRefused):
        read_scopes("admin")
    server = "https://me.example"
    assert read_resource(f"{server}/mcp/", server) == f"{server}/mcp"
    for other in (
        "https://me.example.evil/mcp",
        "https://other.example",
        f"{server}/other",
        f"{server}@x/mcp",
    ):
        with pytest.raises(OAuthRefused):
            read_resource(other, server)
