"""Kill -9 at each step of letting a client in: nothing is issued twice, and nothing answered is lost."""

from __future__ import annotations

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
import pytest
from attrs import define, field

from lithos.stores.oauth.login_links import LoginLinks
from tests.e2e.process import running_lithos
from tests.front.console.visiting import form_of
from tests.front.oauth.flow import CALLBACK, free_port
from tests.front.running import rpc

pytestmark = pytest.mark.slow


@define
class Client:
    """A client and a person whose server is killed under them."""

    data: Path
    port: int = field(factory=free_port)
    verifier: str = field(factory=lambda: secrets.token_urlsafe(48))
    client_id: str = ""

    @contextmanager
    def server(self) -> Iterator[httpx2.Client]:
        """A server that ends by a kill."""
        url = f"http://127.0.0.1:{self.port}"
        environment = {"LITHOS_SERVER__PUBLIC_URL": url}
        with (
            running_lithos(self.data, "--port", str(self.port), env=environment) as running,
            httpx2.Client(base_url=url, timeout=30, verify=False) as http,
        ):
            yield http
            running.kill()

    def register(self, http: httpx2.Client) -> None:
        answer = http.post("/oauth/register", json={"redirect_uris": [CALLBACK], "client_name": "C"})
        self.client_id = answer.json()["client_id"]

    def allow(self, http: httpx2.Client) -> str:
        """The code, after consent."""
        key = LoginLinks(self.data / ".lithos").make(datetime.now(UTC))
        assert http.post("/console/link", data={"key": key}).status_code == 303
        digest = hashlib.sha256(self.verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": CALLBACK,
            "code_challenge": urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        action, fields = form_of(http.get(f"/console/consent?{urlencode(asked)}").text)
        given = {**fields, "answer": "allow", "rights": "write", "days": "7"}
        answer = http.post(action, data=given)
        return dict(parse_qsl(urlsplit(answer.headers["location"]).query))["code"]

    def exchange(self, http: httpx2.Client, code: str) -> httpx2.Response:
        return http.post(
            "/oauth/token",
            data={
                "grant_type": "authorization_code",
                "code": code,
                "client_id": self.client_id,
                "redirect_uri": CALLBACK,
                "code_verifier": self.verifier,
            },
        )

    def refresh(self, http: httpx2.Client, token: str) -> httpx2.Response:
        given = {"grant_type": "refresh_token", "refresh_token": token, "client_id": self.client_id}
        return http.post("/oauth/token", data=given)


def status(http: httpx2.Client, token: str) -> int:
    """Of a call with this access token."""
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    return http.post("/mcp", json=rpc("tools/list"), headers=headers).status_code


def test_what_was_answered_survives_a_kill_at_each_step(tmp_path: Path) -> None:
    """behaviour 273"""
    client = Client(tmp_path)
    with client.server() as http:
        client.register(http)
    with client.server() as http:  # the registration is kept
        code = client.allow(http)
    with client.server() as http:  # the code is
        tokens = client.exchange(http, code).json()
    with client.server() as http:  # the tokens are
        assert status(http, tokens["access_token"]) == 200
        later = client.refresh(http, tokens["refresh_token"]).json()
    with client.server() as http:  # and those that came after, while the code is known as used
        assert status(http, later["access_token"]) == 200
        assert client.exchange(http, code).json()["error"] == "invalid_grant"
        assert status(http, later["access_token"]) == 401
    with client.server() as http:  # the end of a grant is kept, too
        assert status(http, later["access_token"]) == 401
        assert client.refresh(http, later["refresh_token"]).json()["error"] == "invalid_grant"
