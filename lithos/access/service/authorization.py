"""The server as its own authorization server: clients, codes, tokens, grants (docs/spec/connectors.md §3).

All changes are durable before the response is sent. A grant is a named token in the store, so code that
lists, revokes or follows named tokens also covers grants. The client of a request is looked up only for a
person who may consent. Nothing is fetched for strangers.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import trio
from attrs import evolve, frozen

from lithos.access.files.clients import ClientsFull, ClientStore
from lithos.access.files.login_links import LoginLinks
from lithos.access.files.private_file import LockTimeout
from lithos.access.files.tokens import Token, TokenRefused, TokenStore, TokensUnreadable
from lithos.access.model.clients import OWN_PREFIX, OAuthClient, is_document, read_registration
from lithos.access.model.grants import CODE_LIFE, Code, OAuthGrant
from lithos.access.model.redirects import is_known, with_answer
from lithos.access.model.requests import (
    SCOPES,
    AuthorizationRequest,
    OAuthRefused,
    most_of,
    read_authorization,
    take,
)
from lithos.access.service.documents import Documents
from lithos.access.service.issuing import (
    Pair,
    digest_text,
    family_of,
    free_name,
    make_code,
    resource_of,
    split_off,
    tell_pair,
    unknown_grant,
    without_ended,
)
from lithos.access.service.keyring import TokenRing
from lithos.kernel.actors.threads import Threads
from lithos.kernel.log import get_logger
from lithos.kernel.values.limits import Newest
from lithos.kernel.values.principals import Rights
from lithos.notes.model.scopes import Scope

log = get_logger("lithos.oauth")
T = TypeVar("T")

#: Maximum registrations per address and hour, and maximum number of addresses to remember.
MOST_REGISTRATIONS: Final = 20
HOUR: Final = 3600.0
MOST_ADDRESSES: Final = 10_000
#: Maximum number of responses to refresh tokens that are remembered for a short time, because a response may
#: get lost.
MOST_ANSWERS: Final = 1_000


@frozen
class ConsentRequest:
    """A request that a person may allow, and its client."""

    client: OAuthClient
    request: AuthorizationRequest


class Unanswerable(Exception):
    """Error for a request with an unverified redirect URI.

    The error is shown to the person and not sent to the client.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@frozen
class Allowed:
    """The decision of a person: agent name, rights, paths and end for the client."""

    agent: str
    rights: Rights
    until: datetime | None
    #: Paths that the client may change, or None for all paths.
    scope: Scope | None = None


class AuthorizationServer:
    """An OAuth authorization server, which gives clients access.

    `address` is `server.public_url`, the issuer.

    Raises `OAuthRefused` for client errors, and also for disk errors (`temporarily_unavailable`).
    """

    def __init__(
        self, address: str, private: Path, keyring: TokenRing, clock: Callable[[], datetime]
    ) -> None:
        """Store the data in `private`, the `.lithos` folder of the data directory."""
        self.address = address
        self._keyring = keyring
        self._clock = clock
        self._documents = Documents(clock)
        self._blocking = Threads()
        self._tokens = TokenStore(private)
        self._clients = ClientStore(private)
        self._links = LoginLinks(private)
        #: Times of the registrations of each address in the last hour.
        self._registered: Newest[str, deque[float]] = Newest(MOST_ADDRESSES)
        #: Responses to refresh tokens with their times, by the hash of the token.
        self._answers: Newest[str, tuple[datetime, dict[str, Any]]] = Newest(MOST_ANSWERS)
        self._changing = trio.Lock()

    @property
    def grants(self) -> list[Token]:
        """Return the grants sorted by time.

        Ended grants are included, but grants with an unused code are not.
        """
        return [each for each in self._keyring.named if each.grant is not None and not each.is_pending]

    # -- clients --------------------------------------------------------------------------------

    async def register(self, document: Any, address: str) -> dict[str, Any]:
        """Register a client (RFC 7591) that sent its request from this address."""
        now = self._clock()
        client = read_registration(document, f"{OWN_PREFIX}{secrets.token_urlsafe(16)}", now)
        self._count_registration(address)
        in_use = {each.grant.client_id for each in self._keyring.named if each.grant is not None}
        try:
            await self._aside(partial(self._clients.add, client, in_use, now))
        except ClientsFull:
            raise OAuthRefused(
                "temporarily_unavailable", "Too many clients registered today. Try again tomorrow.", 503
            ) from None
        return {
            "client_id": client.id,
            "client_id_issued_at": int(now.timestamp()),
            "client_name": client.name,
            "redirect_uris": list(client.redirect_uris),
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "scope": " ".join(SCOPES),
        }

    def _count_registration(self, address: str) -> None:
        now = trio.current_time()
        times = self._registered[address] = self._registered.get(address, deque())
        while times and now - times[0] >= HOUR:
            times.popleft()
        if len(times) >= MOST_REGISTRATIONS:
            raise OAuthRefused(
                "temporarily_unavailable",
                f"{MOST_REGISTRATIONS} clients registered from this address within an hour. Try again later.",
                429,
            )
        times.append(now)

    async def examine(self, given: Mapping[str, str]) -> ConsentRequest:
        """Return the client and its request.

        Raises `OAuthRefused` if the client should get the error, and `Unanswerable` otherwise.
        """
        client_id, redirect_uri = given.get("client_id", ""), given.get("redirect_uri", "")
        if not client_id or not redirect_uri:
            raise Unanswerable("The client sent no client_id or no redirect_uri.")
        client = await self._find_client(client_id)
        if not is_known(redirect_uri, client.redirect_uris):
            raise Unanswerable("The client did not register the redirect URI of this request.")
        return ConsentRequest(client, read_authorization(given, self.address))

    async def _find_client(self, client_id: str) -> OAuthClient:
        try:
            if is_document(client_id):
                return await self._documents.find(client_id)
            found = await self._aside(partial(self._clients.find, client_id))
        except OAuthRefused as refusal:
            raise Unanswerable(refusal.description) from None
        if found is None:
            raise Unanswerable("This client is not registered here, or no longer. Start again in the client.")
        return found

    # -- a person's decision ---------------------------------------------------------------------

    def refuse(self, given: Mapping[str, str], refusal: OAuthRefused) -> str:
        """Return the address at which the client gets a refusal.

        `examine` must have verified the redirect URI.
        """
        answer = {"error": refusal.error, "error_description": refusal.description}
        return self._answer(given["redirect_uri"], given.get("state"), answer)

    async def allow(self, asked: ConsentRequest, allowed: Allowed) -> str:
        """Store the grant, and return the address at which the client gets its code."""
        request, now = asked.request, self._clock()
        code = make_code()
        rights = min(allowed.rights, most_of(request.scopes), key=SCOPES.index)
        scope = None if rights == "read" else allowed.scope
        grant = OAuthGrant(
            client_id=request.client_id,
            client_name=asked.client.name,
            resource=request.resource,
            code=Code(digest_text(code), now + CODE_LIFE, request.redirect_uri, request.challenge),
            used_at=now,
        )
        nobody = digest_text(secrets.token_urlsafe(32))

        def add(tokens: Sequence[Token]) -> tuple[Sequence[Token], str]:
            kept = without_ended(tokens, now)
            name = free_name(asked.client.name, {each.name for each in kept})
            return [*kept, Token(name, nobody, rights, allowed.agent, now, allowed.until, grant, scope)], name

        name = await self._change(add)
        log.info("oauth client allowed", grant=name, agent=allowed.agent, rights=rights)
        return self._answer(request.redirect_uri, request.state, {"code": code})

    def _answer(self, uri: str, state: str | None, answer: Mapping[str, str]) -> str:
        more = {} if state is None else {"state": state}
        return with_answer(uri, {**answer, **more, "iss": self.address})

    # -- requests of clients --------------------------------------------------------------------

    async def issue(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Return the response of `/oauth/token`."""
        kind = take(given, "grant_type")
        if kind == "authorization_code":
            return await self._exchange(given)
        if kind == "refresh_token":
            return await self._refresh(given)
        raise OAuthRefused(
            "unsupported_grant_type", "The grant_type must be authorization_code or refresh_token."
        )

    async def _exchange(self, given: Mapping[str, str]) -> dict[str, Any]:
        client_id, code = take(given, "client_id"), digest_text(take(given, "code"))
        uri, verifier = take(given, "redirect_uri"), take(given, "code_verifier")
        resource = resource_of(given)
        pair, now = Pair.make(), self._clock()

        def decide(token: Token, grant: OAuthGrant) -> Token | OAuthRefused | None:
            if grant.code.is_used:
                return None
            try:
                grant.redeem(client_id, uri, verifier, resource, now)
            except OAuthRefused as refusal:
                return refusal
            return evolve(token, grant=grant.issuing(pair.issued, now))

        again = "The code was used before, so all tokens issued from it are revoked. Start again."
        token = await self._decide(lambda grant: grant.code.digest == code, decide, again)
        return tell_pair(pair, token)

    async def _refresh(self, given: Mapping[str, str]) -> dict[str, Any]:
        client_id, secret = take(given, "client_id"), take(given, "refresh_token")
        digest, word = digest_text(secret), family_of(secret)
        if word is None:
            raise unknown_grant()
        family, resource, now = digest_text(word), resource_of(given), self._clock()
        pair = Pair.make(word)

        def decide(token: Token, grant: OAuthGrant) -> Token | OAuthRefused | None:
            if client_id != grant.client_id:
                return OAuthRefused("invalid_grant", "The refresh token was issued to another client.")
            if token.has_expired(now):
                return OAuthRefused("invalid_grant", "The grant has ended. Start again.")
            try:
                grant.check_resource(resource)
            except OAuthRefused as refusal:
                return refusal
            if digest == grant.refresh:
                return evolve(token, grant=grant.issuing(pair.issued, now))
            if grant.may_repeat(digest, now):
                # The first response with a new token was lost with the process that sent it, so the token was
                # never used.
                repeated = evolve(
                    grant.issuing(pair.issued, now), former=digest, replaced_at=grant.replaced_at
                )
                return evolve(token, grant=repeated)
            return None

        again = "The refresh token was replaced before, so the grant is revoked. Start again."
        async with self._changing:
            if (kept := self._kept_answer(digest, client_id, now)) is not None:
                return kept
            token = await self._decide(lambda grant: grant.family == family, decide, again, is_held=True)
            told = tell_pair(pair, token)
            self._keep_answer(digest, now, told)
        return told

    def _kept_answer(self, digest: str, client_id: str, now: datetime) -> dict[str, Any] | None:
        """Return the recent response to this refresh token, if its grant has not changed since then."""
        _, told = self._answers.get(digest, (now, None))
        if told is None:
            return None
        latest = digest_text(told["refresh_token"])
        for each in self._keyring.named:
            grant = each.grant
            if grant is not None and grant.refresh == latest and grant.client_id == client_id:
                return told if grant.may_repeat(digest, now) else None
        return None

    def _keep_answer(self, digest: str, now: datetime, told: dict[str, Any]) -> None:
        self._answers[digest] = now, told
        oldest = now - timedelta(minutes=1)
        for key in [key for key, (at, _) in self._answers.items() if not oldest <= at <= now]:
            del self._answers[key]

    async def revoke(self, given: Mapping[str, str]) -> None:
        """End the grant of a token (RFC 7009). An unknown token is ignored."""
        secret, client_id = take(given, "token"), take(given, "client_id")
        digest, word = digest_text(secret), family_of(secret)
        family = None if word is None else digest_text(word)

        def is_its(grant: OAuthGrant) -> bool:
            mine = grant.family == family or any(each.digest == digest for each in grant.access)
            return mine and grant.client_id == client_id

        if self._find(is_its) is None:
            return
        name = await self._change(lambda tokens: split_off(tokens, is_its))
        if name is not None:
            log.info("oauth grant returned by client", grant=name)

    async def throw_out(self, name: str) -> bool:
        """End a grant on behalf of a person. Return whether a grant with that name existed."""

        def remove(tokens: Sequence[Token]) -> tuple[Sequence[Token], bool]:
            left = [each for each in tokens if each.name != name or each.grant is None]
            return left, len(left) < len(tokens)

        return await self._change(remove)

    async def take_link(self, secret: str) -> bool:
        """Invalidate a login link, and return whether it was valid."""
        return await self._aside(partial(self._links.take, secret, self._clock()))

    # -- the file -------------------------------------------------------------------------------

    def _find(self, is_it: Callable[[OAuthGrant], bool]) -> Token | None:
        """Return the matching grant among the loaded grants. Never reads the disk."""
        return next(
            (each for each in self._keyring.named if each.grant is not None and is_it(each.grant)), None
        )

    async def _decide(
        self,
        is_it: Callable[[OAuthGrant], bool],
        decide: Callable[[Token, OAuthGrant], Token | OAuthRefused | None],
        again: str,
        *,
        is_held: bool = False,
    ) -> Token:
        """Change a grant to the result of `decide`, and return its changed token.

        If `decide` returns None, the grant is revoked, and an error with the description `again` is raised.
        Raises `OAuthRefused`, also for an unknown grant.
        """
        if self._find(is_it) is None:
            raise unknown_grant()  # strangers must not be able to cause disk access

        def change(tokens: Sequence[Token]) -> tuple[Sequence[Token], Token | OAuthRefused]:
            for place, token in enumerate(tokens):
                if token.grant is None or not is_it(token.grant):
                    continue
                decided = decide(token, token.grant)
                if isinstance(decided, OAuthRefused):
                    return tokens, decided
                rest = [*tokens[:place], *tokens[place + 1 :]]
                if decided is None:
                    log.warning("oauth grant revoked", grant=token.name, reason=again)
                    return rest, OAuthRefused("invalid_grant", again)
                return [*tokens[:place], decided, *tokens[place + 1 :]], decided
            return tokens, unknown_grant()

        decided = await self._change(change, is_held=is_held)
        if isinstance(decided, OAuthRefused):
            raise decided
        return decided

    async def _change(
        self, decide: Callable[[tuple[Token, ...]], tuple[Sequence[Token], T]], *, is_held: bool = False
    ) -> T:
        """Change the tokens durably, and update the running server before the response is sent."""
        if not is_held:
            async with self._changing:
                return await self._change(decide, is_held=True)
        with trio.CancelScope(shield=True):  # file and memory must stay equal even if the client disconnects
            said = await self._aside(partial(self._tokens.change, decide))
            await self._keyring.follow()
        return said

    async def _aside(self, act: Callable[[], T]) -> T:
        try:
            return await self._blocking.run(act)
        except (OSError, LockTimeout, TokenRefused, TokensUnreadable) as failure:
            log.error("oauth cannot answer", reason=str(failure) or type(failure).__name__)
            raise OAuthRefused(
                "temporarily_unavailable",
                "The server cannot store the change now. Try again in a moment.",
                503,
            ) from failure
