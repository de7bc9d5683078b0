"""Tokens of a foreign authorization server: accepted tokens and every kind of forged token."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
import trio
import trio.testing
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from lithos.access.service.authorization import AuthorizationServer
from lithos.access.service.foreign import EVERY, ForeignTokens
from lithos.access.service.keyring import TokenRing
from lithos.kernel.values.principals import Principal
from lithos.server.settings import OauthConfig
from tests.access.oauth.flow import public_server
from tests.servers import Clock

ISSUER = "https://login.example"
AUDIENCE = "https://notes.example.org/mcp"
KINDS = ("RS256", "ES256", "EdDSA")


@cache
def key_of(algorithm: str, number: int = 0) -> Any:
    if algorithm == "RS256":
        return rsa.generate_private_key(65537, 2048)
    if algorithm == "ES256":
        return ec.generate_private_key(ec.SECP256R1())
    return ed25519.Ed25519PrivateKey.generate()


def published(algorithm: str, kid: str, number: int = 0) -> dict[str, Any]:
    """Return the public key in the format that an issuer publishes."""
    kinds: dict[str, Any] = {
        "RS256": jwt.algorithms.RSAAlgorithm,
        "ES256": jwt.algorithms.ECAlgorithm,
        "EdDSA": jwt.algorithms.OKPAlgorithm,
    }
    row = json.loads(kinds[algorithm].to_jwk(key_of(algorithm, number).public_key()))
    return {**row, "kid": kid, "alg": algorithm, "use": "sig"}


class Issuer:
    """A fake issuer that publishes its keys. `asked` counts the requests for the keys."""

    def __init__(self, keys: list[Any] | None = None) -> None:
        self.keys = [published(each, each) for each in KINDS] if keys is None else keys
        self.asked = 0

    async def get(self, url: str) -> Any:
        if url == f"{ISSUER}/.well-known/openid-configuration":
            return {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"}
        if url == f"{ISSUER}/keys":
            self.asked += 1
            return {"keys": self.keys}
        return None

    def tokens(self, clock: Clock) -> ForeignTokens:
        rights = {"read": "read", "write": "write"}
        return ForeignTokens(ISSUER, (AUDIENCE,), "scope", rights, clock, self.get)


CLOCK = Clock()


def claims(**other: Any) -> dict[str, Any]:
    now = CLOCK().timestamp()
    right = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ada",
        "scope": "openid write",
        "exp": now + 600,
        "nbf": now,
    }
    return {name: value for name, value in {**right, **other}.items() if value is not None}


def signed(algorithm: str = "ES256", kid: str | None = None, number: int = 0, **other: Any) -> str:
    headers = {"kid": kid or algorithm, **other.pop("headers", {})}
    return jwt.encode(claims(**other), key_of(algorithm, number), algorithm=algorithm, headers=headers)


async def find(tokens: ForeignTokens, token: str) -> Principal | None:
    await tokens.prepare(token.encode())
    return tokens.find(token.encode())


def part(value: Any) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def by_public_key() -> str:
    """Return a token that misuses the public key as a shared HMAC secret."""
    body = f"{part({'alg': 'HS256', 'kid': 'RS256', 'typ': 'JWT'})}.{part(claims())}"
    public = key_of("RS256").public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    mac = hmac.new(public, body.encode(), hashlib.sha256).digest()
    return f"{body}.{urlsafe_b64encode(mac).rstrip(b'=').decode()}"


FORGED: dict[str, Callable[[], str]] = {
    "none": lambda: f"{part({'alg': 'none', 'kid': 'ES256'})}.{part(claims())}.",
    "None": lambda: f"{part({'alg': 'None', 'kid': 'ES256'})}.{part(claims())}.",
    "hmac with the public key": by_public_key,
    "another key": lambda: signed(number=1),
    "the kid of another kind": lambda: signed("ES256", kid="RS256"),
    "a kid that nobody has": lambda: signed(kid="other"),
    "a kid that is a path": lambda: signed(kid="../../dev/null"),
    "its own key in the head": lambda: signed(
        number=1, kid="mine", headers={"jwk": published("ES256", "mine", 1)}
    ),
    "its own address of keys": lambda: signed(
        number=1, kid="mine", headers={"jku": "https://evil.example/keys", "x5u": "https://evil.example/x"}
    ),
    "another algorithm of its key": lambda: signed("EdDSA", kid="ES256"),
    "changed claims": lambda: ".".join(
        (signed().split(".")[0], part(claims(sub="root")), signed().split(".")[2])
    ),
    "another issuer": lambda: signed(iss="https://evil.example"),
    "an issuer that begins so": lambda: signed(iss=f"{ISSUER}.evil.example"),
    "no issuer": lambda: signed(iss=None),
    "another audience": lambda: signed(aud="https://other.example/mcp"),
    "no audience": lambda: signed(aud=None),
    "expired": lambda: signed(exp=CLOCK().timestamp() - 61),
    "no end": lambda: signed(exp=None),
    "an end that is no time": lambda: signed(exp=10**30),
    "not yet": lambda: signed(nbf=CLOCK().timestamp() + 61),
    "no right": lambda: signed(scope="openid email"),
    "a right that is not mapped": lambda: signed(scope="admin"),
    "nobody": lambda: signed(sub=None),
    "Lithos itself": lambda: signed(sub="Watcher"),
    "no token": lambda: "a.b.c",
    "too long": lambda: signed(more="x" * 20_000),
}


@pytest.mark.parametrize("algorithm", KINDS)
async def test_valid_token_of_the_issuer_admits_its_subject(algorithm: str) -> None:
    """behaviour 276"""
    tokens = Issuer().tokens(CLOCK)
    found = await find(tokens, signed(algorithm))
    assert found is not None
    assert (found.agent, found.rights, found.is_connector) == ("ada", "write", True)
    assert tokens.is_valid(found)
    by_mail = await find(tokens, signed(algorithm, email="ada@example.org", scope=["read"]))
    assert by_mail is not None
    assert (by_mail.agent, by_mail.rights) == ("ada@example.org", "read")
    late = await find(tokens, signed(algorithm, exp=CLOCK().timestamp() - 59))
    assert late is not None


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
async def test_forged_tokens_are_refused(forge: Callable[[], str]) -> None:
    """behaviour 276: covers signature, algorithm, issuer, audience, time and key."""
    issuer = Issuer()
    tokens = issuer.tokens(CLOCK)
    assert await find(tokens, signed()) is not None
    assert await find(tokens, forge()) is None


def test_issuer_keys_are_requested_at_most_once_a_minute() -> None:
    """behaviour 276: new keys are accepted without a restart."""
    trio.run(_rotate, clock=trio.testing.MockClock(autojump_threshold=0))


async def _rotate() -> None:
    issuer = Issuer()
    tokens = issuer.tokens(CLOCK)
    assert await find(tokens, signed()) is not None
    issuer.keys = [published("ES256", "new", 2)]
    for number in range(50):
        assert await find(tokens, signed(kid=f"other-{number}")) is None
    assert issuer.asked == 1
    await trio.sleep(EVERY)
    assert await find(tokens, signed(kid="new", number=2)) is not None
    assert issuer.asked == 2
    assert await find(tokens, signed()) is None  # the issuer has withdrawn this key


async def test_foreign_token_expires_with_the_clock() -> None:
    clock = Clock(CLOCK.text)
    tokens = Issuer().tokens(clock)
    token = signed()
    found = await find(tokens, token)
    assert found is not None
    assert tokens.next_end(clock()) is not None
    clock.advance(seconds=660)
    assert tokens.find(token.encode()) is None
    assert not tokens.is_valid(found)


@pytest.mark.parametrize(
    "keys", [[], [5, None, {}, {"kty": "RSA"}], [{"kty": "oct", "k": "c2VjcmV0", "kid": "ES256"}]]
)
async def test_invalid_issuer_keys_admit_no_caller(keys: list[Any]) -> None:
    assert await find(Issuer(keys).tokens(CLOCK), signed()) is None


async def test_foreign_issuer_replaces_the_built_in_authorization_server(tmp_path: Path) -> None:
    """behaviour 276"""
    server = {"oauth": OauthConfig(issuer=ISSUER)}
    async with public_server(tmp_path, is_logged_in=False, server=server) as public:
        ring = public.lithos.server.get(TokenRing)
        assert public.lithos.server.find(AuthorizationServer) is None
        assert ring.foreign is not None
        ring.foreign._get = Issuer().get
        metadata = (await public.http.get("/.well-known/oauth-protected-resource/mcp")).json()
        assert metadata["authorization_servers"] == [ISSUER]
        own: list[httpx2.Response] = [
            await public.http.get("/.well-known/oauth-authorization-server"),
            await public.http.post("/oauth/register", json={}),
        ]
        assert [answer.status_code for answer in own] == [404, 404]
        now = public.lithos.server.clock().timestamp()
        token = signed(aud=f"{public.url}/mcp", exp=now + 600, nbf=now)
        assert (await public.call(token)).status_code == 200
        written = await public.tool(token, "lithos_write", title="T", content="C")
        read = await public.tool(token, "lithos_read", id=written["id"])
        assert read["metadata"]["author"] == "ada"
        elsewhere = signed(aud=AUDIENCE, exp=now + 600, nbf=now)
        assert (await public.call(elsewhere)).status_code == 401
