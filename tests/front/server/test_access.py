"""The pure decision: Host, Origin, Token (behaviours 201, 202, 203)."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from lithos.front.server.access import (
    AccessPolicy,
    Passage,
    Refusal,
    RequestHead,
    decide,
    host_admitted,
    open_bind_warning,
    origin_admitted,
    without_query_token,
)
from lithos.front.server.addresses import ADDRESSES, Address

LOCAL = AccessPolicy("127.0.0.1")
LISTED = AccessPolicy(
    "0.0.0.0",
    allowed_hosts=("Notes.example.com", "nas.lan:8765", "192.168.7.7", "fd00::7"),
    allowed_origins=("https://App.example.com/", "http://lan.example:80", "vscode-webview://abc"),
)
HEAD = RequestHead("/mcp", "POST", hosts=("localhost:8765",))


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST:1", "localhost.", "kb.localhost:80", "localhost:", "127.0.0.1"),
        *("127.8.9.1:8765", "[::1]", "[::1]:8765", "[0:0:0:0:0:0:0:1]:9"),
    ],
)
def test_loopback_hosts_pass(host: str) -> None:
    """behaviour 202"""
    assert host_admitted(LOCAL, [host])


@pytest.mark.parametrize(
    "host",
    [
        *(
            "evil.example",
            "localhost.evil.example",
            "evillocalhost",
            "127.0.0.1.evil.example",
            "",
            " ",
            ":80",
        ),
        *(
            "0.0.0.0",
            "192.168.1.1",
            "user@localhost",
            "localhost:80:80",
            "localhost:x",
            "::1",
            "[::2]",
            "[::1",
        ),
        *("[127.0.0.1]", "localhost/..", "localhost evil", "[::ffff:127.0.0.1]", "localhost:123456"),
        "2130706433",
    ],
)
def test_other_and_malformed_hosts_are_refused(host: str) -> None:
    """behaviour 202"""
    assert not host_admitted(LOCAL, [host])


@pytest.mark.parametrize("hosts", [[], ["localhost", "localhost"], ["localhost", "evil.example"]])
def test_an_absent_or_repeated_host_is_refused(hosts: list[str]) -> None:
    """behaviour 202"""
    assert not host_admitted(LOCAL, hosts)
    assert host_admitted(evolve(LOCAL, allowed_hosts=("*",)), hosts)


@pytest.mark.parametrize(
    ("host", "admitted"),
    [
        ("notes.example.com", True),
        ("notes.EXAMPLE.com:99", True),
        ("nas.lan:8765", True),
        ("nas.lan:1", False),
        ("nas.lan", False),
        ("192.168.7.7:1", True),
        ("[fd00::7]:8765", True),
        ("example.com", False),
        ("0.0.0.0:8765", False),
        ("localhost", True),
    ],
)
def test_an_entry_with_a_port_admits_that_port_only(host: str, admitted: bool) -> None:
    """behaviour 202"""
    assert host_admitted(LISTED, [host]) is admitted


@pytest.mark.parametrize(
    ("bound", "host"), [("192.168.1.5", "192.168.1.5:8765"), ("fd00::1", "[fd00::1]"), ("NAS", "nas:1")]
)
def test_the_bound_address_passes(bound: str, host: str) -> None:
    """behaviour 202"""
    assert host_admitted(AccessPolicy(bound), [host])


@pytest.mark.parametrize("bound", ["0.0.0.0", "::", ""])
def test_a_wildcard_bind_admits_no_further_name(bound: str) -> None:
    assert not host_admitted(AccessPolicy(bound), ["192.168.1.5"])
    assert not host_admitted(AccessPolicy(bound), [bound])


@pytest.mark.parametrize(
    ("origin", "admitted"),
    [
        ("http://localhost:3000", True),
        ("https://[::1]:1", True),
        ("http://127.0.0.1", True),
        ("https://app.example.com", True),
        ("https://app.example.com:443", True),
        ("http://lan.example", True),
        ("vscode-webview://abc", True),
        ("http://app.example.com", False),
        ("https://app.example.com.evil", False),
        ("https://app.example.com:444", False),
        ("null", False),
        ("", False),
        ("localhost", False),
        ("file://localhost", False),
        ("http://localhost.evil.example", False),
        ("http://user@localhost", False),
    ],
)
def test_loopback_and_listed_origins_pass(origin: str, admitted: bool) -> None:
    """behaviour 202"""
    assert origin_admitted(LISTED, origin) is admitted
    assert origin_admitted(evolve(LISTED, allowed_origins=("*",)), origin)


def test_host_is_checked_before_origin_and_origin_before_token() -> None:
    """behaviours 201, 202"""
    policy = AccessPolicy("127.0.0.1", auth_token="secret")
    worst = evolve(HEAD, hosts=("evil.example",), origins=("https://evil.example",))
    reasons = []
    for head in (worst, evolve(worst, hosts=HEAD.hosts), HEAD):
        decision = decide(policy, head)
        assert isinstance(decision, Refusal)
        reasons.append((decision.status, decision.reason))
    assert reasons == [(403, "forbidden_host"), (403, "forbidden_origin"), (401, "unauthorized")]


def test_refusals_name_the_setting() -> None:
    """behaviour 202"""
    host = decide(LOCAL, evolve(HEAD, hosts=("evil.example",)))
    origin = decide(LOCAL, evolve(HEAD, origins=("null",)))
    assert isinstance(host, Refusal)
    assert isinstance(origin, Refusal)
    assert host.body is not None
    assert list(host.body) == ["error", "message"]
    assert "server.allowed_hosts" in host.body["message"]
    assert origin.body is not None
    assert origin.body["error"] == "forbidden_origin"
    assert "server.allowed_origins" in origin.body["message"]


@pytest.mark.parametrize(
    ("authorizations", "admitted"),
    [
        (("Bearer s3cret",), True),
        (("bearer  s3cret ",), True),
        (("Bearer s3cre",), False),
        (("Bearer ",), False),
        (("Basic s3cret",), False),
        (("s3cret",), False),
        ((), False),
        (("Bearer s3cret", "Bearer s3cret"), False),
        (("Bearer \xff\xfe",), False),
    ],
)
def test_a_token_is_needed_as_bearer(authorizations: tuple[str, ...], admitted: bool) -> None:
    """behaviour 201"""
    policy = AccessPolicy("127.0.0.1", auth_token="s3cret")
    decision = decide(policy, evolve(HEAD, authorizations=authorizations))
    assert isinstance(decision, Passage) is admitted
    if isinstance(decision, Refusal):
        assert decision.body == {"error": "unauthorized"}
        assert (b"www-authenticate", b"Bearer") in decision.headers


@pytest.mark.parametrize(
    ("path", "query", "admitted"),
    [
        ("/events", b"access_token=s3%20cret&since=1", True),
        ("/events/ws", b"types=x&access_token=s3+cret", True),
        ("/events", b"access_token=wrong", False),
        ("/events", b"access_token=", False),
        ("/events", b"", False),
        ("/mcp", b"access_token=s3%20cret", False),
        ("/metrics", b"access_token=s3%20cret", False),
    ],
)
def test_only_event_streams_take_the_token_from_the_query(path: str, query: bytes, admitted: bool) -> None:
    """behaviour 201"""
    policy = AccessPolicy("127.0.0.1", auth_token="s3 cret")
    assert isinstance(decide(policy, evolve(HEAD, path=path, query=query)), Passage) is admitted


def test_health_needs_nothing() -> None:
    """behaviour 201"""
    policy = AccessPolicy("127.0.0.1", auth_token="secret")
    assert decide(policy, RequestHead("/health", origins=("https://evil.example",))) == Passage(Address(None))


def test_known_origins_get_cors_headers_even_on_a_401() -> None:
    head = evolve(HEAD, origins=("http://localhost:3000",))
    for decision in (decide(LOCAL, head), decide(evolve(LOCAL, auth_token="x"), head)):
        assert (b"access-control-allow-origin", b"http://localhost:3000") in decision.headers
        assert (b"vary", b"Origin") in decision.headers


def test_a_preflight_needs_no_token_but_a_known_origin() -> None:
    policy = AccessPolicy("127.0.0.1", auth_token="secret")
    asked = evolve(
        HEAD,
        method="OPTIONS",
        origins=("http://localhost:3000",),
        asks_method="POST",
        asks_headers="authorization, mcp-method",
        asks_private_network=True,
    )
    granted = decide(policy, asked)
    assert isinstance(granted, Refusal)
    assert (granted.status, granted.body) == (204, None)
    assert (b"access-control-allow-headers", b"authorization, mcp-method") in granted.headers
    assert (b"access-control-allow-private-network", b"true") in granted.headers
    refused = decide(policy, evolve(asked, origins=("https://evil.example",)))
    assert isinstance(refused, Refusal)
    assert refused.status == 403


@pytest.mark.parametrize("bound", ["0.0.0.0", "::", "", "192.168.1.5", "nas"])
def test_an_open_bind_without_token_warns(bound: str) -> None:
    """behaviour 203"""
    warning = open_bind_warning(AccessPolicy(bound))
    assert warning is not None
    assert "server.auth_token" in warning
    assert open_bind_warning(AccessPolicy(bound, auth_token="x")) is None


@pytest.mark.parametrize("bound", ["127.0.0.1", "localhost", "::1", "[::1]"])
def test_a_loopback_bind_does_not_warn(bound: str) -> None:
    """behaviour 203"""
    assert open_bind_warning(AccessPolicy(bound)) is None


def test_the_token_is_in_no_representation() -> None:
    policy = AccessPolicy("127.0.0.1", auth_token="s3cret")
    head = RequestHead("/events", authorizations=("Bearer s3cret",), query=b"access_token=s3cret")
    assert "s3cret" not in repr(policy) + repr(head)


@pytest.mark.parametrize(
    ("query", "left"),
    [
        (b"since=1&access_token=x&types=a", b"since=1&types=a"),
        (b"access%5Ftoken=x", b""),
        (b"a=%20", b"a=%20"),
        (b"", b""),
        (b"access_token", b""),
    ],
)
def test_the_query_token_goes_no_further_than_the_gate(query: bytes, left: bytes) -> None:
    assert without_query_token(query) == left


@given(st.text(), st.text(), st.binary())
def test_no_request_head_can_break_the_decision(host: str, origin: str, query: bytes) -> None:
    head = RequestHead("/events", hosts=(host,), origins=(origin,), query=query)
    policy = AccessPolicy("127.0.0.1", auth_token="s3cret")
    assert isinstance(decide(policy, head), Refusal)


@given(st.from_regex(r"\A[a-z0-9-]{1,8}(\.[a-z0-9-]{1,8}){0,3}\Z"))
def test_only_listed_names_pass(name: str) -> None:
    """behaviour 202"""
    if name != "localhost" and not name.endswith(".localhost") and not name.startswith("127."):
        assert not host_admitted(LOCAL, [name])
    assert host_admitted(evolve(LOCAL, allowed_hosts=(name,)), [f"{name}:8765"])


OWN = AccessPolicy("192.0.2.7", "secret", console=True)


@pytest.mark.parametrize(
    ("path", "origin", "fetch_site", "passes"),
    [
        ("/console/tasks", "http://192.0.2.7:8765", None, True),
        ("/console/tasks", "https://192.0.2.7:8765", "same-origin", True),
        ("/console/tasks", "http://192.0.2.7:9999", None, False),
        ("/console/tasks", "http://evil.example", None, False),
        ("/console/tasks", "null", "same-origin", True),
        ("/console/tasks", "null", None, True),
        ("/console/tasks", "null", "cross-site", False),
        ("/console/tasks", "null", "same-site", False),
        ("/mcp", "null", "same-origin", False),
        ("/mcp", "http://192.0.2.7:8765", None, False),
    ],
)
def test_only_the_consoles_own_pages_reach_it_and_are_given_no_cors(
    path: str, origin: str, fetch_site: str | None, passes: bool
) -> None:
    head = RequestHead(path, "POST", ("192.0.2.7:8765",), (origin,), fetch_site=fetch_site)
    decision = decide(OWN, head)
    if passes:
        assert decision == Passage(ADDRESSES["/console/"])
    else:
        assert isinstance(decision, Refusal)
        assert decision.reason == "forbidden_origin"


@pytest.mark.parametrize("path", ["/", "/console", "/console/", "/console/notes/x"])
def test_the_console_asks_for_the_token_itself(path: str) -> None:
    head = RequestHead(path, hosts=("192.0.2.7:8765",))
    assert decide(OWN, head) == Passage(ADDRESSES["/console/"])
    without = decide(evolve(OWN, console=False), head)
    assert isinstance(without, Refusal)
    assert without.status == 404


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/consoles", 404),
        ("/console-x/", 404),
        ("//console/", 404),
        *((p, 401) for p in ("/mcp", "/metrics")),
    ],
)
def test_nothing_beside_the_console_is_open_by_it(path: str, status: int) -> None:
    decision = decide(OWN, RequestHead(path, hosts=("192.0.2.7:8765",)))
    assert isinstance(decision, Refusal)
    assert decision.status == status
