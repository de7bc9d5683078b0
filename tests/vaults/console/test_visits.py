"""Visits in the overview console, with a fixed clock."""

from __future__ import annotations

from datetime import timedelta

from lithos.kernel.values.principals import ANYONE, Principal
from lithos.server.console.sessions import LIFE, MOST_SESSIONS
from lithos.server.tools.token_ports import AUTH_TOKEN, OneToken
from lithos.vaults.console.visits import Visits
from tests.server.console.hosting import View
from tests.servers import Clock


class Revoked(OneToken):
    """The token ring of a vault that no longer accepts its earlier tokens."""

    def is_valid(self, principal: Principal) -> bool:
        return False


def made(clock: Clock, **tokens: str | None) -> tuple[Visits, dict[str, View]]:
    """Return visits to vaults that are not running. Some vaults have tokens, and one is open."""
    views = {name: View(name, OneToken(token), None, "unavailable") for name, token in tokens.items()}
    return Visits(lambda: tuple(views.values()), clock), views


def test_token_opens_vaults_that_accept_it_before_they_run() -> None:
    visits, _ = made(Clock(), home="a", work="a", other="b")
    visit = visits.begin(b"a", None)
    assert visit is not None
    assert visits.find(visit.id) is visit
    assert list(visits.allowed(visit)) == ["home", "work"]
    assert {principal for _, principal in visits.allowed(visit).values()} == {AUTH_TOKEN}
    assert not visits.enter(visit)


def test_visit_without_a_token_opens_no_protected_vault() -> None:
    visits, _ = made(Clock(), home="a", hall=None)
    assert visits.needs_login
    assert [visits.begin(secret, None) for secret in (b"", b"b", b"A")] == [None, None, None]
    assert {name: who for name, (_, who) in visits.allowed(None).items()} == {"hall": ANYONE}
    assert (visits.find(None), visits.find(""), visits.find("x"), len(visits)) == (None, None, None, 0)


def test_visit_ends_after_its_lifetime_or_a_clock_setback() -> None:
    for step in (LIFE, -timedelta(hours=1)):
        clock = Clock()
        visits, _ = made(clock, home="a")
        visit = visits.begin(b"a", None)
        assert visit is not None
        clock.now += step
        assert visits.find(visit.id) is None
        assert len(visits) == 0
        assert visits.why_ended(visit.id).startswith("Your session has ended")
    assert visits.why_ended(None) == ""


def test_visit_ends_when_it_loses_its_last_vault() -> None:
    visits, views = made(Clock(), home="a", work="a")
    visit = visits.begin(b"a", None)
    assert visit is not None
    views["work"] = View("work", Revoked("a"), None)
    assert visits.find(visit.id) is visit
    assert list(visits.allowed(visit)) == ["home"]
    views["work"] = View("work", OneToken("a"), None)
    assert list(visits.allowed(visit)) == ["home"]  # A lost vault stays closed until the next login.
    views["home"] = View("home", Revoked("a"), None)
    assert visits.find(visit.id) is None
    assert len(visits) == 0


def test_least_recently_used_visit_is_dropped() -> None:
    visits, _ = made(Clock(), home="a")
    first, second = visits.begin(b"a", None), visits.begin(b"a", None)
    assert first is not None
    assert second is not None
    assert visits.find(first.id) is first
    for _ in range(MOST_SESSIONS - 1):
        visits.begin(b"a", None)
    assert (visits.find(first.id), visits.find(second.id), len(visits)) == (first, None, MOST_SESSIONS)


def test_form_token_is_valid_for_only_one_visit() -> None:
    visits, _ = made(Clock(), home="a")
    one, other = visits.begin(b"a", None), visits.begin(b"a", None)
    assert one is not None
    assert other is not None
    assert (one.owns(one.csrf), one.owns(other.csrf), one.owns(""), one.owns("ä")) == (
        True,
        False,
        False,
        False,
    )
