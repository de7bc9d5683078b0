"""Grants: the rights that a person gave to a client, with the code, access tokens and refresh token.

Only hashes are stored. A code is valid once, and an access token for an hour. A refresh token is valid until
its first use, which replaces it with a new token. All refresh tokens of a grant begin with the same secret
word, the token family. By this word, a replaced token is recognised as a token of the grant, although nothing
else about it is stored.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from attrs import evolve, field, frozen

from lithos.access.model.requests import OAuthRefused, is_verified

CODE_LIFE: Final = timedelta(seconds=60)
ACCESS_LIFE: Final = timedelta(hours=1)
#: Period without use after which a grant ends.
UNUSED: Final = timedelta(days=90)
#: Period in which a replaced refresh token may be used again, because the response may have been lost.
GRACE: Final = timedelta(seconds=30)
#: Maximum number of valid access tokens per grant. A client uses the newest token and perhaps the previous
#: one.
MOST_ACCESS: Final = 4


@frozen
class Code:
    """An authorization code, and the values to which it is bound."""

    digest: str = field(repr=False)
    expires_at: datetime
    redirect_uri: str
    challenge: str = field(repr=False)
    is_used: bool = False


@frozen
class Access:
    """One access token of a grant."""

    digest: str = field(repr=False)
    expires_at: datetime

    def is_valid(self, now: datetime) -> bool:
        """Return whether the token is valid.

        After the clock was set back, a token may end later than a new token would. Such a token is invalid.
        """
        return timedelta(0) < self.expires_at - now <= ACCESS_LIFE + timedelta(minutes=1)


@frozen
class Issued:
    """Hashes of new access and refresh tokens.

    `family` is the hash of the first word of the refresh token.
    """

    access: str = field(repr=False)
    refresh: str = field(repr=False)
    family: str = field(repr=False)


@frozen
class OAuthGrant:
    """The rights of a client. Its token stores the name, the agent, the rights and the end."""

    client_id: str
    client_name: str
    resource: str
    code: Code
    used_at: datetime
    access: tuple[Access, ...] = ()
    family: str = field(default="", repr=False)
    refresh: str = field(default="", repr=False)
    #: The previous refresh token, and the time at which it was replaced.
    former: str = field(default="", repr=False)
    replaced_at: datetime | None = None

    def has_ended(self, now: datetime) -> bool:
        """Return whether the grant has ended.

        A grant ends if its code expires unused, or if it is unused for too long.
        """
        if not self.code.is_used:
            return not self._is_fresh(now)
        return now - self.used_at >= UNUSED

    def _is_fresh(self, now: datetime) -> bool:
        return timedelta(0) < self.code.expires_at - now <= CODE_LIFE + timedelta(seconds=1)

    def redeem(
        self, client_id: str, redirect_uri: str, verifier: str, resource: str | None, now: datetime
    ) -> None:
        """Check that an authorization code is still unused and may be exchanged. Raises `OAuthRefused`."""
        if not self._is_fresh(now):
            raise OAuthRefused("invalid_grant", "The code has expired. Start again.")
        if client_id != self.client_id:
            raise OAuthRefused("invalid_grant", "The code was issued to another client.")
        if redirect_uri != self.code.redirect_uri:
            raise OAuthRefused("invalid_grant", "The redirect_uri differs from that of the authorization.")
        if not is_verified(self.code.challenge, verifier):
            raise OAuthRefused("invalid_grant", "The code_verifier does not match the challenge.")
        self.check_resource(resource)

    def check_resource(self, resource: str | None) -> None:
        """Check that the requested resource is the resource that the person allowed.

        Raises `OAuthRefused`.
        """
        if resource is not None and resource != self.resource:
            raise OAuthRefused("invalid_target", "The resource differs from that of the authorization.")

    def may_repeat(self, digest: str, now: datetime) -> bool:
        """Return whether this refresh token was replaced a moment ago.

        The response with the new token may have been lost.
        """
        if digest != self.former or self.replaced_at is None:
            return False
        return timedelta(0) <= now - self.replaced_at <= GRACE

    def issuing(self, issued: Issued, now: datetime) -> OAuthGrant:
        """Return the grant with a new access token, and a refresh token that replaces the previous one."""
        valid = [each for each in self.access if each.is_valid(now)]
        access = (*valid[-(MOST_ACCESS - 1) :], Access(issued.access, now + ACCESS_LIFE))
        return evolve(
            self,
            code=evolve(self.code, is_used=True),
            used_at=now,
            access=access,
            family=issued.family,
            refresh=issued.refresh,
            former=self.refresh,
            replaced_at=now,
        )
