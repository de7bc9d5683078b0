"""Plain text files of any encoding, which become parts by line (behaviour 290)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.attachments.model.kinds import MOST_PARTS
from lithos.attachments.model.parts import NotExtractable
from lithos.attachments.model.plain import PART_CHARACTERS, PART_LINES, read_text
from lithos.attachments.model.reading import read_parts


def told(data: bytes) -> list[tuple[str, str]]:
    return [(part.place, part.text) for part in read_text(data)]


@pytest.mark.parametrize(
    "data",
    [
        "größe 語".encode(),
        "größe 語".encode("utf-8-sig"),
        "größe 語".encode("utf-16"),
        b"\xfe\xff" + "größe 語".encode("utf-16-be"),
        "größe 語".encode("utf-32"),
    ],
)
def test_unicode_is_detected_by_its_byte_order_mark(data: bytes):
    assert told(data) == [("1", "größe 語")]


def test_bytes_other_than_utf_8_are_read_as_windows_1252():
    assert told("größe “x” €".encode("cp1252")) == [("1", "größe “x” €")]
    assert told(b"a\x81b\xff") == [("1", "a\ufffdbÿ")]


@pytest.mark.parametrize("data", [b"\0" * 1_000, b"GIF89a\0\1", b"text\0"])
def test_binary_data_is_refused_as_text(data: bytes):
    with pytest.raises(NotExtractable, match="binary data"):
        read_text(data)


def test_utf_16_of_odd_length_is_read_to_the_end():
    assert told(b"\xff\xfea\0b\0c") == [("1", "ab\ufffd")]


def test_text_parts_end_at_paragraphs_or_after_forty_lines():
    lines = [f"line {number}" for number in range(1, 101)]
    lines[29] = ""  # line 30
    assert [place for place, _ in told("\n".join(lines).encode())] == ["1", "31", "71"]
    assert [place for place, _ in told("\r\n".join(lines).encode())] == ["1", "31", "71"]
    assert [place for place, _ in told(b"\n\n\n x\n")] == ["4"]


def test_long_line_is_split_and_places_mark_the_continuation():
    words = ("word " * 1_000).encode()
    parts = told(b"short\n" + words + b"\nend")
    assert [place for place, _ in parts] == ["1", "2", "2:2001", "2:4001"]
    assert parts[-1][1].endswith("word \nend")
    assert all(len(text) <= PART_CHARACTERS + 1 for _, text in told(b"x" * 100_000))


@given(st.lists(st.text(st.sampled_from("abc é\u3042."), max_size=30) | st.just("x" * 3_000), max_size=150))
def test_no_text_is_lost_and_every_place_is_unique(lines: list[str]):
    parts = told("\n".join(lines).encode())
    assert "".join("".join(text for _, text in parts).split()) == "".join("".join(lines).split())
    assert len({place for place, _ in parts}) == len(parts)
    for place, text in parts:
        first = text.split("\n")[0].split()
        number, _, column = place.partition(":")
        assert (
            lines[int(number) - 1][int(column or 1) - 1 :].split()[: len(first)] == first or len(text) > 900
        )
        assert text.count("\n") < PART_LINES


def test_text_is_read_only_as_far_as_requested():
    """30 MB in one line, or in empty lines, must not become a list of lines."""
    endless = read_parts("text", "a.txt", b"x" * 30_000_000)
    assert [next(endless).place for _ in range(MOST_PARTS)][-1].startswith("1:")
    assert list(read_parts("text", "a.txt", b"\n" * 1_000_000)) == []
