"""Consent in a browser. Another site links to the consent page, and the answer returns to that site."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode

import httpx2
import pytest

from lithos.access.files.login_links import LoginLinks
from tests.access.oauth.flow import free_port
from tests.browser.driving import Browser
from tests.e2e.process import running_lithos

pytestmark = [pytest.mark.slow, pytest.mark.takes(12)]
#: Example verifier from RFC 7636.
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


@contextmanager
def client_site(links: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Serve another site on a free port. Yield the port and the list of requested paths."""
    asked: list[str] = []

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers.get('Referer', '')}")
            link = links[0].replace("&", "&amp;") if links else ""
            body = f'<h1>A client</h1><main><a href="{link}">Connect</a></main>'.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log no request."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1], asked
        server.shutdown()
        thread.join()


def test_consent_answer_returns_to_the_site_that_linked_to_it(tmp_path: Path, window: Browser) -> None:
    """behaviour 275: the session cookie is sent, the page policy allows the redirect, one click revokes."""
    port, links = free_port(), list[str]()
    base = f"http://127.0.0.1:{port}"
    with (
        running_lithos(tmp_path, "--port", str(port), env={"LITHOS_SERVER__PUBLIC_URL": base}),
        client_site(links) as (site, asked),
        httpx2.Client(base_url=base, timeout=30, verify=False) as http,
    ):
        callback = f"http://localhost:{site}/callback"
        registered = http.post(
            "/oauth/register", json={"redirect_uris": [callback], "client_name": "A client"}
        )
        client = registered.json()["client_id"]
        query = {
            "response_type": "code",
            "client_id": client,
            "redirect_uri": callback,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "state": "kept",
        }
        links.append(f"{base}/oauth/authorize?{urlencode(query)}")
        browser = window.visit(
            base, f"/console/link?key={LoginLinks(tmp_path / '.lithos').make(datetime.now(UTC))}"
        )
        browser.click("Log in", "button")
        browser.shows("Overview", "body")
        browser.driver.get(f"http://localhost:{site}/")
        browser.click("Connect", "a")
        browser.shows("Allow A client to connect?")
        assert browser.faults() == []
        browser.picture("oauth-consent")
        browser.click("Allow access", "button")
        browser.until(lambda: any(line.startswith("/callback?code=") for line in asked), "the answer came")
        answer = next(line for line in asked if line.startswith("/callback?code="))
        assert "state=kept" in answer
        assert answer.endswith(" ")  # the line ends with a blank if no referrer was sent
        code = answer.partition("code=")[2].partition("&")[0]
        given = {
            "grant_type": "authorization_code", "code": code, "client_id": client, "redirect_uri": callback,
            "code_verifier": VERIFIER,
        }  # fmt: skip
        tokens = json.loads(http.post("/oauth/token", data=given).text)
        headers = {"Authorization": f"Bearer {tokens['access_token']}"}
        with http.stream("GET", "/events", headers=headers) as stream:
            assert stream.status_code == 200
            browser.open("/console/agents")
            browser.shows("Remote clients")
            assert browser.faults() == []
            browser.picture("oauth-grants")
            browser.click("Revoke", "button")
            began = time.monotonic()
            for _ in stream.iter_bytes():
                pass
            closed = time.monotonic() - began
        browser.shows("The access of a-client-1 has ended", "body")
        browser.picture("oauth-thrown-out")
        print(f"the stream was closed after {closed:.2f} s")  # noqa: T201 - for `pytest -s`
        assert http.post("/mcp", headers=headers, json={}).status_code == 401
