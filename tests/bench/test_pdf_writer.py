"""The PDF writer of the benchmarks: files that hold together, and text that comes out as it was put in."""

from __future__ import annotations

import re
import zlib

import pytest

from bench.pdf_writer import A4, Bitmap, Page, Run, make_pdf, page_of_lines, text_width, visual_order

LINES = (
    "The notice period is 90 days, see § 7 (draft).",
    "ההסכם נחתם בחיפה ותקופת ההודעה היא 90 ימים.",
    "وقع العقد في القاهرة بحضور المدير ومهلة الإشعار شهران.",
    "合同的通知期为三个月，由北京的王伟签署 2024。",
    "かなカナ 漢字 Grüße żółw Ω Привет",
)


def test_the_table_of_objects_points_at_each_of_them() -> None:
    data = make_pdf([page_of_lines(LINES), Page((), (Bitmap(0, 0, 9, 9, 2, 2, b"\0\x40\x80\xff"),))])
    start = int(re.findall(rb"startxref\n(\d+)\n%%EOF\n\Z", data)[0])
    table = data[start:].split(b"\ntrailer")[0].split(b"\n")
    assert table[0] == b"xref"
    assert table[1] == f"0 {len(table) - 2}".encode()
    assert all(len(row) == 19 for row in table[2:])  # with its newline 20
    for number, row in enumerate(table[3:], 1):
        assert data[int(row[:10]) :].startswith(f"{number} 0 obj\n".encode())


def test_streams_are_as_long_as_they_say_and_unpack() -> None:
    data = make_pdf([page_of_lines(LINES)])
    found = list(re.finditer(rb"/Length (\d+)>>\nstream\n", data))
    assert len(found) == 2
    for each in found:
        packed = data[each.end() : each.end() + int(each[1])]
        assert data[each.end() + int(each[1]) :].startswith(b"\nendstream")
        assert zlib.decompress(packed)


def test_the_same_pages_give_the_same_bytes() -> None:
    assert make_pdf([page_of_lines(LINES)]) == make_pdf([page_of_lines(LINES)])


def test_text_comes_out_as_it_was_put_in() -> None:
    pdfium = pytest.importorskip("pypdfium2")
    document = pdfium.PdfDocument(make_pdf([page_of_lines(LINES), page_of_lines(LINES[1:3], leftwards=True)]))
    said = [page.get_textpage().get_text_range().splitlines() for page in document]
    assert said == [list(LINES), list(LINES[1:3])]


def test_a_picture_has_no_text_and_is_drawn() -> None:
    pdfium = pytest.importorskip("pypdfium2")
    black = Bitmap(0, 0, *A4, 1, 1, b"\0")
    document = pdfium.PdfDocument(make_pdf([Page((), (black,))], title="Scan"))
    assert document.get_metadata_dict()["Title"] == "Scan"
    assert document[0].get_textpage().get_text_range() == ""
    assert set(bytes(document[0].render(scale=0.1, grayscale=True).buffer)) == {0}


ORDERS = (
    ("left to right 12", "left to right 12"),
    ("אבג", "גבא"),
    ("אבג 12 דה", "הד 12 גבא"),
    ("אבג (דה)", "(הד) גבא"),
    ("see אבג דה now", "see הד גבא now"),
    ("אב Northwind Ltd גד", "דג Northwind Ltd בא"),
)


@pytest.mark.parametrize(("logical", "drawn"), ORDERS)
def test_characters_are_drawn_in_the_order_of_their_scripts(logical: str, drawn: str) -> None:
    assert visual_order(logical) == drawn


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one page"):
        make_pdf([])
    with pytest.raises(ValueError, match="basic plane"):
        make_pdf([Page((Run(0, 0, 10, "😀"),))])
    with pytest.raises(ValueError, match="4 given"):
        make_pdf([Page((), (Bitmap(0, 0, 9, 9, 3, 3, bytes(4)),))])
    with pytest.raises(ValueError, match="do not fit"):
        page_of_lines(["line"] * 100)


def test_east_asian_characters_are_square() -> None:
    assert text_width("ab漢字", 10) == 5 + 5 + 10 + 10
