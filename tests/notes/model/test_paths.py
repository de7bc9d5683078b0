from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lithos.kernel.values.errors import InvalidInput
from lithos.notes.model.paths import (
    file_name_of,
    host_of,
    is_portable,
    namespace_of,
    normalise_url,
    resolve_new_path,
    resolve_read_path,
    slug_of,
)

ID = "647ceeaa-b2f4-5f08-9b41-0701a41c063d"


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Python: Tips & Tricks!", "python-tips-tricks"),
        ("Café Größe", "cafe-grosse"),
        ("Привет мир", "privet-mir"),
        ("日本語", "ribenyu"),
        ("snake_case  and\tspace", "snake-case-and-space"),
        ("--a -- b--", "a-b"),
        ("!!!", "note-647ceeaa"),
        ("", "note-647ceeaa"),
        ("x" * 300, "x" * 120),
    ],
)
def test_slugs_are_transliterated_titles(title: str, slug: str) -> None:
    """behaviour 178."""
    assert slug_of(title, ID) == slug


@given(st.text(max_size=200))
def test_slug_is_short_plain_and_never_empty(title: str) -> None:
    assert re.fullmatch(r"[a-z0-9-]{1,120}", slug_of(title, ID))


def test_namespace_follows_the_folder_unless_explicit() -> None:
    assert namespace_of("a/b/note.md", None) == "a/b"
    assert namespace_of("note.md", None) == "default"
    assert namespace_of("a/note.md", "own") == "own"


@pytest.mark.parametrize(
    ("path", "result"),
    [
        (None, "slug.md"),
        ("", "slug.md"),
        ("procedures", "procedures/slug.md"),
        ("a/b/", "a/b/slug.md"),
        ("a//b", "a/b/slug.md"),
        ("own.md", "own.md"),
        ("a/own.md", "a/own.md"),
        ("v1.2", "v1.2/slug.md"),
        ("mémo/日本.md", "mémo/日本.md"),
    ],
)
def test_path_or_slug_determines_the_path_of_a_new_note(path: str | None, result: str) -> None:
    """behaviours 4, 5."""
    assert resolve_new_path(path, "slug") == result


@pytest.mark.parametrize("path", ["a.md/b", "a.md/b.md", "a.md/", "x/a.md/y/z.md"])
def test_only_the_last_path_segment_may_end_in_md(path: str) -> None:
    """behaviour 6."""
    with pytest.raises(InvalidInput):
        resolve_new_path(path, "slug")


OUTSIDE = [
    "/etc/passwd", "/", "//a", "../x", "a/../../x", "a/..", "..", ".", "./a", ".hidden/x", "a/.md", "a\\b",
    "..\\x", "nul\0.md", "a\nb", "a\x7f", "\ud800.md", "é" * 130, "a/" * 1500, "x" * 253 + ".md",
]  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE)
def test_paths_that_could_leave_the_notes_folder_are_refused(path: str) -> None:
    """behaviour 8."""
    for resolve in (lambda: resolve_new_path(path, "slug"), lambda: resolve_read_path(path)):
        with pytest.raises(InvalidInput, match="within knowledge directory"):
            resolve()


def test_names_up_to_255_bytes_are_accepted() -> None:
    assert resolve_new_path("x" * 252 + ".md", "slug") == "x" * 252 + ".md"
    assert resolve_read_path("x" * 252) == "x" * 252 + ".md"


def test_path_passed_to_read_gets_suffix_and_keeps_folders() -> None:
    assert resolve_read_path("a/b") == "a/b.md"
    assert resolve_read_path("a/b.md") == "a/b.md"
    assert resolve_read_path("v1.2 notes") == "v1.2 notes.md"
    assert resolve_read_path("folder/Dr. Smith") == "folder/Dr. Smith.md"
    assert resolve_read_path("2026.11.28") == "2026.11.28.md"
    assert resolve_read_path("knowledge/a") == "knowledge/a.md"
    with pytest.raises(InvalidInput):
        resolve_read_path("")


@given(st.text(alphabet="ab./\\\0 é", max_size=12))
def test_resolved_path_is_relative_and_inside_the_notes_folder(path: str) -> None:
    try:
        resolved = resolve_new_path(path, "slug")
    except InvalidInput:
        return
    assert resolved.endswith(".md")
    assert all(segment and not segment.startswith(".") for segment in resolved.split("/"))
    assert resolve_read_path(resolved) == resolved


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Plain title", "Plain title"),
        ('a\\b/c:d*e?f"g<h>i|j#k^l[m]n', "a b c d e f g h i j k l m n"),
        (" ..hidden.. ", "hidden"),
        ("Cafe\u0301", "Caf\u00e9"),
        ("x" * 130, "x" * 120),
        ("x" * 119 + ".y", "x" * 119),
        ("\u65e5" * 100, "\u65e5" * 66),
        ("\U0001f600" * 60, "\U0001f600" * 50),
        ("a\x00b\x1f", "a b"),
        ("???", f"note-{ID.replace('-', '')[:8]}"),
        ("...", f"note-{ID.replace('-', '')[:8]}"),
    ],
)
def test_title_yields_a_file_name(title: str, name: str) -> None:
    """behaviour 254"""
    assert file_name_of(title, ID) == name


@given(st.text())
@example("LPT0")
@example("aux.txt")
def test_file_names_are_valid_in_file_systems_and_wiki_links(title: str) -> None:
    """behaviours 254, 352"""
    name = file_name_of(title, ID)
    assert name
    assert len(name) <= 120
    assert len(name.encode()) <= 200
    assert not set('\\/:*?"<>|#^[]\0\n') & set(name)
    assert name == name.strip(". \t")
    path = resolve_new_path("folder", name)
    assert is_portable(path.removeprefix("folder/"))
    assert (path == f"folder/{name}.md") is is_portable(f"{name}.md")  # only names of devices change
    assert resolve_read_path(path) == path


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
def test_different_spellings_of_one_url_are_normalised_equally(url: str, stored: str) -> None:
    """behaviour 25."""
    assert normalise_url(url) == stored


@pytest.mark.parametrize(
    "url",
    ["", " ", "example.com", "ftp://example.com/a", "file:///etc/passwd", "javascript:alert(1)", "http://", "http:///a",
     "http:example.com", "http://:80/", "http://h:99999/", "http://h:x/", "http://h:-1/", "http://h:1:2/", "http://[::1",
     "http://[x]/", "http://[v1.a]/", "http://a b/", "http://a\\b/", "http://h/\0", "http://h/a\nb", "http://\ud800/",
     "http://./", "http://u@/"],
)  # fmt: skip
def test_invalid_urls_are_refused(url: str) -> None:
    """behaviour 26."""
    with pytest.raises(InvalidInput):
        normalise_url(url)


@given(URLS)
@example("http://h/a;p/")
@example("http://h/a ;p")
@example("http://h/?%75tm_source=1&%C3")
def test_normalising_a_url_twice_changes_nothing(url: str) -> None:
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
def test_host_of_a_url_has_no_port(url: str, host: str) -> None:
    assert host_of(url) == host
