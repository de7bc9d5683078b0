"""Unmodified OAuth client of the `mcp` SDK. It knows only the server's address and calls a tool."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
import trio
from attrs import define
from mcp.client.auth import OAuthClientProvider
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from lithos.access.model.clients import OAuthClient, read_document
from tests.access.oauth.flow import Public, public_server
from tests.server.console.visiting import form_of

DOCUMENT = "https://client.example/client.json"
CALLBACK = "http://localhost:3030/callback"


@define
class Kept:
    """The client's stored tokens and registration."""

    tokens: OAuthToken | None = None
    info: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.info

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.info = client_info


class Person:
    """A person who opens the client's page and allows the request."""

    def __init__(self, public: Public) -> None:
        self.public = public
        self.answered: dict[str, str] = {}
        self.asked = 0

    async def open(self, url: str) -> None:
        self.asked += 1
        leading = await self.public.person.get(url)
        assert leading.status_code == 200
        page = await self.public.person.get(f"/console/consent?{urlsplit(url).query}")
        assert page.status_code == 200, page.text
        action, fields = form_of(page.text)
        fields |= {"answer": "allow", "rights": "write", "days": "7", "agent": "sdk"}
        answer = await self.public.person.post(action, data=fields)
        self.answered = dict(parse_qsl(urlsplit(answer.headers["location"]).query))

    async def answer(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            code=self.answered["code"], state=self.answered["state"], iss=self.answered["iss"]
        )


async def names_of(public: Public, kept: Kept, person: Person, document: str | None) -> set[str]:
    """Let the SDK client get access. Return the names of the tools that the client lists."""
    metadata = OAuthClientMetadata(client_name="SDK client", redirect_uris=[AnyUrl(CALLBACK)])
    auth = OAuthClientProvider(
        f"{public.url}/mcp", metadata, kept, person.open, person.answer, client_metadata_url=document
    )
    with trio.fail_after(60):
        async with (
            httpx2.AsyncClient(auth=auth, timeout=30, verify=False) as http,
            streamable_http_client(f"{public.url}/mcp", http_client=http) as (reader, writer),
            ClientSession(reader, writer) as session,
        ):
            await session.initialize()
            written = await session.call_tool("lithos_write", {"title": "From afar", "content": "Hello."})
            assert not written.is_error
            return {tool.name for tool in (await session.list_tools()).tools}


@pytest.mark.parametrize("document", [None, DOCUMENT], ids=["registration", "metadata document"])
async def test_sdk_client_gets_access_and_reconnects(tmp_path: Path, document: str | None) -> None:
    """behaviour 272: the client knows only the server's address. It registers or uses a metadata document."""
    async with public_server(tmp_path) as public:

        async def find(client_id: str) -> OAuthClient:
            told = {"client_id": client_id, "client_name": "SDK client", "redirect_uris": [CALLBACK]}
            return read_document(told, client_id, public.lithos.server.clock())

        public.server._documents.find = find  # type: ignore[method-assign]
        kept, person = Kept(), Person(public)
        assert {"lithos_write", "search", "fetch"} <= await names_of(public, kept, person, document)
        assert person.asked == 1
        assert kept.info is not None
        assert (kept.info.client_id == DOCUMENT) is (document is not None)
        assert kept.tokens is not None
        assert kept.tokens.refresh_token is not None
        (grant,) = public.server.grants
        assert (grant.agent, grant.rights) == ("sdk", "write")
        kept.tokens.access_token = "lithos_a_expired"
        await names_of(public, kept, person, document)
