from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lithos.core.errors import InvalidInput
from lithos.core.notes.paths import host_of, normalise_url

URLS = st.tuples(
    st.sampled_from(["http://", "HTTPS://", "https://u:p@"]),
    st.sampled_from(["Example.org", "bücher.DE", "[2001:DB8::1]", "h.de:80", "h.de:443", "h:8080"]),
    st.text(alphabet="aB/;?&=#%+:@ é\u00a0.E9", max_size=20).map(lambda tail: "/" + tail),
).map("".join)


@pytest.mark.parametrize(
    ("url", "stored"),
    [
        ("  https://Example.COM/Path  ", "https://example.com/Path"),
        ("HTTP://example.com:80/", "http://example.com"),
        ("https://example.com:443", "https://example.com"),
        ("https://example.com:8443/a", "https://example.com:8443/a"),
        ("http://example.com:443/a", "http://example.com:443/a"),
        ("https://example.com:/a/b//", "https://example.com/a/b"),
        ("https://user:secret@example.com/a", "https://example.com/a"),
        ("https://example.com/a#part", "https://example.com/a"),
        ("https://example.com/a;v=1?x=1", "https://example.com/a?x=1"),
        ("https://example.com/a;p/;q/", "https://example.com/a"),
        ("https://example.com/?utm_source=x&fbclid=1&utm_campaign=&utm_medium=m&utm_term=t&utm_content=c",
         "https://example.com"),
        ("https://example.com/a?b=2&a=Two&a=One&empty=", "https://example.com/a?a=Two&a=One&b=2&empty="),
        ("https://example.com/a?q=a%20b&p=a+b", "https://example.com/a?p=a+b&q=a+b"),
        ("https://example.com/a?q=%E9", "https://example.com/a?q=%E9"),
        ("https://example.com/a b", "https://example.com/a%20b"),
        ("http://[2001:DB8::1]:80/a", "http://[2001:db8::1]/a"),
        ("https://BÜCHER.example/Ä", "https://bücher.example/Ä"),
    ],
)  # fmt: skip
def test_spellings_of_one_address_become_one(url: str, stored: str) -> None:
    """behaviour 25."""
    assert normalise_url(url) == stored


@pytest.mark.parametrize(
    "url",
    ["", " ", "example.com", "ftp://example.com/a", "file:///etc/passwd", "javascript:alert(1)", "http://", "http:///a",
     "http:example.com", "http://:80/", "http://h:99999/", "http://h:x/", "http://h:-1/", "http://h:1:2/", "http://[::1",
     "http://[x]/", "http://[v1.a]/", "http://a b/", "http://a\\b/", "http://h/\0", "http://h/a\nb", "http://\ud800/",
     "http://./", "http://u@/"],
)  # fmt: skip
def test_anything_else_is_refused(url: str) -> None:
    """behaviour 26."""
    with pytest.raises(InvalidInput):
        normalise_url(url)


@given(URLS)
@example("http://h/a;p/")
@example("http://h/a ;p")
@example("http://h/?%75tm_source=1&%C3")
def test_a_stored_address_is_its_own_stored_form(url: str) -> None:
    try:
        stored = normalise_url(url)
    except InvalidInput:
        return
    assert normalise_url(stored) == stored


@given(st.text(max_size=30))
def test_any_text_is_normalised_or_refused(text: str) -> None:
    for url in (text, "http://" + text, "https://h/" + text):
        try:
            stored = normalise_url(url)
        except InvalidInput:
            continue
        assert normalise_url(stored) == stored


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://e.org", "e.org"),
        ("https://E.org:8080/a/b?c=d", "e.org"),
        ("http://e.org?x=//y", "e.org"),
        ("http://[2001:db8::1]:80/a", "[2001:db8::1]"),
        ("no address", ""),
    ],
)
def test_the_host_of_an_address_has_no_port(url: str, host: str) -> None:
    assert host_of(url) == host
