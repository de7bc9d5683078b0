"""Access decision for a request by Host, Origin and token, without a server (behaviours 201, 202, 203)."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from lithos.server.http.access import (
    ADDRESSES,
    AccessPolicy,
    AdmittedRequest,
    Refusal,
    RequestHead,
    RouteAccess,
    decide,
    host_admitted,
    open_bind_warning,
    origin_admitted,
    without_query_token,
)

LOCAL = AccessPolicy("127.0.0.1")
LISTED = AccessPolicy(
    "0.0.0.0",
    allowed_hosts=("Notes.example.com", "nas.lan:8765", "192.168.7.7", "fd00::7"),
    allowed_origins=("https://App.example.com/", "http://lan.example:80", "vscode-webview://abc"),
)
HEAD = RequestHead("/mcp", "POST", hosts=("localhost:8765",))


LOOPBACK = (
    "localhost", "LOCALHOST:1", "localhost.", "kb.localhost:80", "localhost:", "127.0.0.1",
    "127.8.9.1:8765", "[::1]", "[::1]:8765", "[0:0:0:0:0:0:0:1]:9",
)  # fmt: skip
OTHERS = (
    "evil.example", "localhost.evil.example", "evillocalhost", "127.0.0.1.evil.example", "", " ", ":80",
    "0.0.0.0", "192.168.1.1", "user@localhost", "localhost:80:80", "localhost:x", "::1", "[::2]", "[::1",
    "[127.0.0.1]", "localhost/..", "localhost evil", "[::ffff:127.0.0.1]", "localhost:123456", "2130706433",
)  # fmt: skip


def test_only_valid_single_loopback_hosts_are_admitted() -> None:
    """behaviour 202"""
    due = dict.fromkeys(LOOPBACK, True) | dict.fromkeys(OTHERS, False)
    assert {host: host_admitted(LOCAL, [host]) for host in due} == due
    for hosts in ([], ["localhost", "localhost"], ["localhost", "evil.example"]):
        assert not host_admitted(LOCAL, hosts), hosts
        assert host_admitted(evolve(LOCAL, allowed_hosts=("*",)), hosts), hosts


def test_host_entry_with_a_port_admits_only_that_port() -> None:
    """behaviour 202"""
    due = {
        "notes.example.com": True, "notes.EXAMPLE.com:99": True, "nas.lan:8765": True, "nas.lan:1": False,
        "nas.lan": False, "192.168.7.7:1": True, "[fd00::7]:8765": True, "example.com": False,
        "0.0.0.0:8765": False, "localhost": True,
    }  # fmt: skip
    assert {host: host_admitted(LISTED, [host]) for host in due} == due


def test_bound_address_is_admitted_unless_it_is_a_wildcard() -> None:
    """behaviour 202"""
    for bound, host in (
        ("192.168.1.5", "192.168.1.5:8765"), ("fd00::1", "[fd00::1]"), ("NAS", "nas:1"),
    ):  # fmt: skip
        assert host_admitted(AccessPolicy(bound), [host]), bound
    for bound in ("0.0.0.0", "::", ""):
        assert not host_admitted(AccessPolicy(bound), ["192.168.1.5"]), bound
        assert not host_admitted(AccessPolicy(bound), [bound]), bound


def test_loopback_and_listed_origins_are_admitted() -> None:
    """behaviour 202"""
    passing = (
        "http://localhost:3000", "https://[::1]:1", "http://127.0.0.1", "https://app.example.com",
        "https://app.example.com:443", "http://lan.example", "vscode-webview://abc",
    )  # fmt: skip
    refused = (
        "http://app.example.com", "https://app.example.com.evil", "https://app.example.com:444", "null", "",
        "localhost", "file://localhost", "http://localhost.evil.example", "http://user@localhost",
    )  # fmt: skip
    due = dict.fromkeys(passing, True) | dict.fromkeys(refused, False)
    assert {origin: origin_admitted(LISTED, origin) for origin in due} == due
    assert all(origin_admitted(evolve(LISTED, allowed_origins=("*",)), origin) for origin in due)


def test_access_checks_run_in_order_host_origin_token() -> None:
    """behaviours 201, 202"""
    policy = AccessPolicy("127.0.0.1", auth_token="secret")
    worst = evolve(HEAD, hosts=("evil.example",), origins=("https://evil.example",))
    reasons = []
    for head in (worst, evolve(worst, hosts=HEAD.hosts), HEAD):
        decision = decide(policy, head)
        assert isinstance(decision, Refusal)
        reasons.append((decision.status, decision.reason))
    assert reasons == [(403, "forbidden_host"), (403, "forbidden_origin"), (401, "unauthorized")]


def test_refusal_of_host_or_origin_names_the_setting() -> None:
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


def test_token_is_accepted_only_as_bearer_header() -> None:
    """behaviour 201"""
    policy = AccessPolicy("127.0.0.1", auth_token="s3cret")
    wrong = (
        ("Bearer s3cre",), ("Bearer ",), ("Basic s3cret",), ("s3cret",), (), ("Bearer s3cret",) * 2,
        ("Bearer \xff\xfe",),
    )  # fmt: skip
    for told in (("Bearer s3cret",), ("bearer  s3cret ",)):
        assert isinstance(decide(policy, evolve(HEAD, authorizations=told)), AdmittedRequest), told
    for told in wrong:
        decision = decide(policy, evolve(HEAD, authorizations=told))
        assert isinstance(decision, Refusal), told
        assert decision.body == {"error": "unauthorized"}
        assert (b"www-authenticate", b"Bearer") in decision.headers


def test_query_token_is_accepted_only_for_event_streams() -> None:
    """behaviour 201"""
    policy = AccessPolicy("127.0.0.1", auth_token="s3 cret")
    due = {
        ("/events", b"access_token=s3%20cret&since=1"): AdmittedRequest,
        ("/events/ws", b"types=x&access_token=s3+cret"): AdmittedRequest,
        ("/events", b"access_token=wrong"): Refusal,
        ("/events", b"access_token="): Refusal,
        ("/events", b""): Refusal,
        ("/mcp", b"access_token=s3%20cret"): Refusal,
        ("/metrics", b"access_token=s3%20cret"): Refusal,
    }
    assert {
        (path, query): type(decide(policy, evolve(HEAD, path=path, query=query))) for path, query in due
    } == due


def test_health_is_admitted_without_host_and_token() -> None:
    """behaviour 201"""
    policy = AccessPolicy("127.0.0.1", auth_token="secret")
    assert decide(policy, RequestHead("/health", origins=("https://evil.example",))) == AdmittedRequest(
        RouteAccess(None)
    )


def test_known_origins_get_cors_headers_even_on_401() -> None:
    head = evolve(HEAD, origins=("http://localhost:3000",))
    for decision in (decide(LOCAL, head), decide(evolve(LOCAL, auth_token="x"), head)):
        assert (b"access-control-allow-origin", b"http://localhost:3000") in decision.headers
        assert (b"vary", b"Origin") in decision.headers


def test_preflight_needs_a_known_origin_but_no_token() -> None:
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


def test_open_bind_without_a_token_causes_a_warning() -> None:
    """behaviour 203"""
    for bound in ("0.0.0.0", "::", "", "192.168.1.5", "nas"):
        warning = open_bind_warning(AccessPolicy(bound))
        assert warning is not None, bound
        assert "server.auth_token" in warning
        assert open_bind_warning(AccessPolicy(bound, auth_token="x")) is None, bound
    for bound in ("127.0.0.1", "localhost", "::1", "[::1]"):
        assert open_bind_warning(AccessPolicy(bound)) is None, bound


def test_token_does_not_appear_in_any_repr() -> None:
    policy = AccessPolicy("127.0.0.1", auth_token="s3cret")
    head = RequestHead("/events", authorizations=("Bearer s3cret",), query=b"access_token=s3cret")
    assert "s3cret" not in repr(policy) + repr(head)


def test_http_gate_removes_the_token_from_the_query() -> None:
    due = {
        b"since=1&access_token=x&types=a": b"since=1&types=a", b"access%5Ftoken=x": b"", b"a=%20": b"a=%20",
        b"": b"", b"access_token": b"",
    }  # fmt: skip
    assert {query: without_query_token(query) for query in due} == due


@given(st.text(), st.text(), st.binary())
def test_arbitrary_request_heads_do_not_break_the_access_decision(
    host: str, origin: str, query: bytes
) -> None:
    head = RequestHead("/events", hosts=(host,), origins=(origin,), query=query)
    policy = AccessPolicy("127.0.0.1", auth_token="s3cret")
    assert isinstance(decide(policy, head), Refusal)


@given(st.from_regex(r"\A[a-z0-9-]{1,8}(\.[a-z0-9-]{1,8}){0,3}\Z"))
def test_only_listed_host_names_are_admitted(name: str) -> None:
    """behaviour 202"""
    if name != "localhost" and not name.endswith(".localhost") and not name.startswith("127."):
        assert not host_admitted(LOCAL, [name])
    assert host_admitted(evolve(LOCAL, allowed_hosts=(name,)), [f"{name}:8765"])


OWN = AccessPolicy("192.0.2.7", "secret", console=True)


def test_console_accepts_only_its_own_origin() -> None:
    own = "http://192.0.2.7:8765"
    for path, origin, fetch_site, passes in (
        ("/console/tasks", own, None, True),
        ("/console/tasks", "https://192.0.2.7:8765", "same-origin", True),
        ("/console/tasks", "http://192.0.2.7:9999", None, False),
        ("/console/tasks", "http://evil.example", None, False),
        ("/console/tasks", "null", "same-origin", True),
        ("/console/tasks", "null", None, True),
        ("/console/tasks", "null", "cross-site", False),
        ("/console/tasks", "null", "same-site", False),
        ("/mcp", "null", "same-origin", False),
        ("/mcp", own, None, False),
    ):
        head = RequestHead(path, "POST", ("192.0.2.7:8765",), (origin,), fetch_site=fetch_site)
        decision = decide(OWN, head)
        if passes:
            assert decision == AdmittedRequest(ADDRESSES["/console/"]), (path, origin, fetch_site)
        else:
            assert isinstance(decision, Refusal), (path, origin, fetch_site)
            assert decision.reason == "forbidden_origin"


def test_only_console_pages_are_unprotected() -> None:
    for path in ("/", "/console", "/console/", "/console/notes/x"):
        head = RequestHead(path, hosts=("192.0.2.7:8765",))
        assert decide(OWN, head) == AdmittedRequest(ADDRESSES["/console/"]), path
        without = decide(evolve(OWN, console=False), head)
        assert isinstance(without, Refusal), path
        assert without.status == 404
    due = {"/consoles": 404, "/console-x/": 404, "//console/": 404, "/mcp": 401, "/metrics": 401}
    for path, status in due.items():
        decision = decide(OWN, RequestHead(path, hosts=("192.0.2.7:8765",)))
        assert isinstance(decision, Refusal), path
        assert decision.status == status, path
