"""Permitted redirect URIs, and exact matching of a requested redirect URI."""

from __future__ import annotations

import pytest

from lithos.access.model.clients import is_document, read_name
from lithos.access.model.redirects import check_redirect, is_known, place_of, with_answer

KNOWN = (
    "https://client.example/callback",
    "http://localhost/callback",
    "http://127.0.0.1:3000/cb",
    "cursor://a/b",
)
#: URIs that do not lead to the registered redirect URI, although they resemble it.
TRICKS = {
    "case of the host": "https://CLIENT.example/callback",
    "case of the path": "https://client.example/Callback",
    "encoded": "https://client.example/%63allback",
    "a slash more": "https://client.example/callback/",
    "a dot segment": "https://client.example/x/../callback",
    "userinfo": "https://client.example@evil.example/callback",
    "userinfo in front": "https://evil.example@client.example/callback",
    "fragment": "https://client.example/callback#x",
    "query": "https://client.example/callback?next=https://evil.example",
    "port": "https://client.example:8443/callback",
    "usual port": "https://client.example:443/callback",
    "scheme": "http://client.example/callback",
    "suffix": "https://client.example.evil.example/callback",
    "prefix": "https://evil-client.example/callback",
    "backslash": "https://client.example\\@evil.example/callback",
    "blank": "https://client.example/callback ",
    "line break": "https://client.example/callback\nx",
    "loopback of another path": "http://localhost:1/other",
    "loopback by another name": "http://[::1]:1/callback",
    "loopback as a part": "http://localhost.evil.example:1/callback",
    "loopback with userinfo": "http://localhost:1@evil.example/callback",
    "loopback by https": "https://localhost:1/callback",
    "loopback in decimal": "http://2130706433/callback",
    "another scheme": "cursor2://a/b",
}


@pytest.mark.parametrize("uri", TRICKS.values(), ids=TRICKS)
def test_redirect_uri_in_another_spelling_is_unknown(uri: str) -> None:
    """behaviour 272: redirect URIs match exactly."""
    assert not is_known(uri, KNOWN)


@pytest.mark.parametrize(
    "uri", [*KNOWN, "http://localhost:54321/callback", "http://127.0.0.1:1/cb", "http://127.0.0.1/cb"]
)
def test_loopback_redirects_match_at_any_port(uri: str) -> None:
    assert is_known(uri, KNOWN)


@pytest.mark.parametrize(
    "uri",
    [
        "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "http://client.example/cb",
        "https://user:secret@client.example/cb", "https://client.example/cb#x", "https:///cb", "https://",
        "//client.example/cb", "/cb", "", "https://client.example/" + "a" * 2_000, "https://cli ent.example/",
        "https://client.example/\"x", "HTTPS://client.example/cb", "https://client.example:99999999/cb",
        "blob:https://client.example/x", 5, None,
    ],
)  # fmt: skip
def test_unsafe_redirect_uris_cannot_be_registered(uri: object) -> None:
    with pytest.raises(ValueError, match="a redirect URI"):
        check_redirect(uri)


def test_redirect_answer_is_appended_to_an_existing_query() -> None:
    assert with_answer("https://a.example/?x=1", {"code": "a b"}) == "https://a.example/?x=1&code=a+b"
    assert with_answer("https://a.example/", {"code": "c"}) == "https://a.example/?code=c"
    assert place_of("https://a.example:1/x?y") == "https://a.example:1"
    assert place_of("cursor://a/b") == "cursor:"


@pytest.mark.parametrize(
    "client_id",
    [
        "http://a.example/c", "https://a.example", "https://a.example/", "https://a.example/c#x",
        "https://a.example/c?x", "https://u@a.example/c", "https://a.example/../c", "https://a.example/./c",
        "https://A.example/c", "https://a.example/%2e%2e/c", "https://a.example//c", "https://localhost/c",
        "https://[::1]/c", "https://a.example/" + "c" * 600, "https://a.example/c\\d", "ftp://a.example/c",
        "https://a.example:70000/c", "https://a.example:65536/c", "https://a.example:0/c", "https://a.example:/c",
        "https://a.example:0443/c", "https://a.example:-1/c", "https://a.example:99999999999/c",
        "https://a.example:80:80/c", "https://[2001:db8::1]:443/c", "https://[::1/c", "https:///c", "https://:443/c",
        "https://u:p@a.example/c", "https://exämple.org/c", "https://a.example./c", "https://\uff41.example/c",
    ],
)  # fmt: skip
def test_metadata_document_address_has_only_one_valid_spelling(client_id: str) -> None:
    assert not is_document(client_id)


def test_metadata_document_addresses_are_recognised() -> None:
    assert is_document("https://claude.ai/oauth/mcp-oauth-client-metadata")
    assert is_document("https://a.example:8443/c.json")
    assert is_document("https://a.example:65535/c.json")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("Cla\u202eude", "Cla ude"), ("A\nB\r\n  C", "A B C"), ("x" * 5_000, "x" * 80),
        ("\x1b[31mA", "[31mA"), ("", "a client without a name"), (7, "a client without a name"),
        ("\u200b", "a client without a name"),
    ],
)  # fmt: skip
def test_client_name_is_one_short_printable_line(given: object, shown: str) -> None:
    """The consent page must not show reversed or hidden letters, and no second line of the name."""
    assert read_name(given) == shown
