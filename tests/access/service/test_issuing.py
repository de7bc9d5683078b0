"""Deletion of ended grants if a new client needs their space."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lithos.access.files.named_tokens import Token
from lithos.access.model.grants import Code, OAuthGrant
from lithos.access.service import issuing

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def make_grant(name: str, days: int, *, is_used: bool = True) -> Token:
    used = NOW - timedelta(days=days)
    code = Code("d", used + timedelta(seconds=60), "https://c.example/", "c", is_used)
    grant = OAuthGrant(client_id="c", client_name=name, resource="r", code=code, used_at=used)
    return Token(name, "0" * 64, "write", "agent", used, None, grant)


def test_only_one_ended_grant_is_deleted_for_a_new_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the clock is ten years ahead, all grants seem to have ended.

    A new client must still replace only one grant.
    """
    monkeypatch.setattr(issuing, "MOST_TOKENS", 4)
    grants = [make_grant("b", 10), make_grant("a", 80), make_grant("c", 5), make_grant("d", 1)]
    ahead = NOW + timedelta(days=3_650)
    assert [each.name for each in issuing.without_ended(grants, ahead)] == ["b", "c", "d"]
    assert issuing.without_ended(grants[:3], ahead) == grants[:3]
    assert issuing.without_ended(grants, NOW) == grants
    unused = make_grant("e", 1, is_used=False)
    assert issuing.without_ended([*grants[:3], unused], NOW) == grants[:3]
