"""A minimal writer of PDF files for benchmarks: placed text of any script, straight rules, grey pictures.

No font file is embedded: text is set in one Type0 font whose two-byte codes are the code points themselves,
and a reader extracts it by the identity ToUnicode map; how it looks is up to the viewer's substitute font.
Only characters of the basic plane can be set. Positions and sizes are points (1/72 inch) from the lower left
corner of a page, A4 unless it says otherwise. The same pages give the same bytes with the same zlib.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Iterable, Sequence
from typing import Final

from attrs import frozen

A4: Final = (595.0, 842.0)
MARGIN: Final = 50.0
#: Widths of characters in thousandths of the size: East Asian ones (`_WIDE`, code points) are square.
NARROW_WIDTH, WIDE_WIDTH = 500, 1000
_WIDE: Final = ((0x2E80, 0xD7A3), (0xF900, 0xFAFF), (0xFF00, 0xFFEF))
#: Ranges that one block of a CMap may have.
_MOST_RANGES: Final = 100
#: Bidirectional classes of characters that run from right to left, and of those that run left to right.
_LEFTWARDS: Final = frozenset({"R", "AL"})
_RIGHTWARDS: Final = frozenset({"L", "EN", "AN"})
#: Objects of every file before its first page.
_CATALOG, _PAGES, _INFO, _FONT, _CID_FONT, _DESCRIPTOR, _TO_UNICODE = range(1, 8)


@frozen
class Run:
    """Text on one baseline, in the order of reading; `x` is its left end also where it runs leftwards."""

    x: float
    y: float
    size: float
    text: str

    @property
    def width(self) -> float:
        return text_width(self.text, self.size)


@frozen
class Bitmap:
    """A grey picture of `columns` x `rows` bytes (255 is white), top row first, drawn `width` x `height`."""

    x: float
    y: float
    width: float
    height: float
    columns: int
    rows: int
    pixels: bytes


@frozen
class Page:
    """What stands on a page; `rules` are thin lines from (x, y) to (x, y)."""

    runs: Sequence[Run] = ()
    bitmaps: Sequence[Bitmap] = ()
    rules: Sequence[tuple[float, float, float, float]] = ()
    size: tuple[float, float] = A4


def text_width(text: str, size: float) -> float:
    """Points that a text is wide; marks that stand on other characters count as well."""
    wide = sum(any(first <= ord(one) <= last for first, last in _WIDE) for one in text)
    return size * (WIDE_WIDTH * wide + NARROW_WIDTH * (len(text) - wide)) / 1000


def page_of_lines(
    lines: Iterable[str], *, size: float = 10.0, leading: float = 1.4, leftwards: bool = False
) -> Page:
    """A page with each line below the other from the upper margin on, flush left, or right if `leftwards`.

    `leading` is the distance of baselines in sizes. ValueError when they do not fit on the page.
    """
    width, height = A4
    runs = []
    y = height - MARGIN - size
    for line in lines:
        if y < MARGIN:
            raise ValueError("the lines do not fit on one page")
        if line:
            x = width - MARGIN - text_width(line, size) if leftwards else MARGIN
            runs.append(Run(x, y, size, line))
        y -= size * leading
    return Page(tuple(runs))


def make_pdf(pages: Sequence[Page], *, title: str = "") -> bytes:
    """The file of these pages. ValueError without any, and for a character outside the basic plane."""
    if not pages:
        raise ValueError("a PDF file has at least one page")
    objects: dict[int, bytes] = {}
    kids = []
    number = _TO_UNICODE + 1
    for page in pages:
        kids.append(number)
        pictures = range(number + 2, number + 2 + len(page.bitmaps))
        objects[number] = _page_object(page, number + 1, pictures)
        objects[number + 1] = _stream(_content(page))
        objects.update(zip(pictures, map(_picture_object, page.bitmaps), strict=True))
        number += 2 + len(page.bitmaps)
    objects.update(_shared_objects(kids, title))
    return _file(objects)


def visual_order(text: str) -> str:
    """The characters of a line from left to right as they are drawn.

    A line whose first letter runs leftwards is turned around, but for numbers and words of other scripts in
    it; in one that runs rightwards the stretches that run leftwards are. (Brackets are mirrored, levels are
    not nested any deeper.)
    """
    directions = [_direction(one) for one in text]
    letters = [one for one in directions if one]
    if "l" not in letters:
        return text
    base = letters[0]
    stretches: list[tuple[str, str]] = []
    for direction, part in _stretches(text, directions, base):
        turned = part[::-1].translate(_MIRRORED) if direction == "l" else part
        stretches.append((direction, turned))
    ordered = reversed(stretches) if base == "l" else stretches
    return "".join(part for _, part in ordered)


_MIRRORED: Final = str.maketrans("()[]{}<>«»", ")(][}{><»«")


def _direction(character: str) -> str:
    """`l` for leftwards, `r` for rightwards, nothing for what goes with its neighbours."""
    kind = unicodedata.bidirectional(character)
    return "l" if kind in _LEFTWARDS else "r" if kind in _RIGHTWARDS else ""


def _stretches(text: str, directions: Sequence[str], base: str) -> list[tuple[str, str]]:
    """Stretches of one direction; what has none is between two of the same theirs, otherwise the line's."""
    resolved = list(directions)
    for place, direction in enumerate(directions):
        if not direction:
            before = next((one for one in reversed(directions[:place]) if one), base)
            after = next((one for one in directions[place + 1 :] if one), base)
            resolved[place] = before if before == after else base
    found: list[tuple[str, str]] = []
    for character, direction in zip(text, resolved, strict=True):
        if found and found[-1][0] == direction:
            found[-1] = (direction, found[-1][1] + character)
        else:
            found.append((direction, character))
    return found


# Objects


def _shared_objects(kids: Sequence[int], title: str) -> dict[int, bytes]:
    """What all pages need: the tree of pages and the font."""
    tree = " ".join(f"{kid} 0 R" for kid in kids)
    named = f"\ufeff{title}".encode("utf-16-be").hex()
    widths = " ".join(f"{first} {last} {WIDE_WIDTH}" for first, last in _WIDE)
    return {
        _CATALOG: f"<</Type/Catalog/Pages {_PAGES} 0 R>>".encode(),
        _PAGES: f"<</Type/Pages/Count {len(kids)}/Kids[{tree}]>>".encode(),
        _INFO: f"<</Producer(lithos bench)/Title<{named}>>>".encode(),
        _FONT: (
            f"<</Type/Font/Subtype/Type0/BaseFont/Bench/Encoding/Identity-H"
            f"/DescendantFonts[{_CID_FONT} 0 R]/ToUnicode {_TO_UNICODE} 0 R>>"
        ).encode(),
        _CID_FONT: (
            "<</Type/Font/Subtype/CIDFontType2/BaseFont/Bench/CIDToGIDMap/Identity"
            "/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>"
            f"/FontDescriptor {_DESCRIPTOR} 0 R/DW {NARROW_WIDTH}/W[{widths}]>>"
        ).encode(),
        _DESCRIPTOR: (
            b"<</Type/FontDescriptor/FontName/Bench/Flags 4/FontBBox[0 -200 1000 800]/ItalicAngle 0"
            b"/Ascent 800/Descent -200/CapHeight 700/StemV 80>>"
        ),
        _TO_UNICODE: _stream(_identity_map()),
    }  # fmt: skip


def _identity_map() -> bytes:
    """Each two-byte code is its own code point; a range may not cross a first byte."""
    ranges = [f"<{high:02x}00> <{high:02x}ff> <{high:02x}00>" for high in range(256)]
    blocks = [ranges[at : at + _MOST_RANGES] for at in range(0, len(ranges), _MOST_RANGES)]
    lines = [
        "/CIDInit /ProcSet findresource begin",
        "12 dict begin",
        "begincmap",
        "/CIDSystemInfo <</Registry (Adobe) /Ordering (UCS) /Supplement 0>> def",
        "/CMapName /Adobe-Identity-UCS def",
        "/CMapType 2 def",
        "1 begincodespacerange",
        "<0000> <ffff>",
        "endcodespacerange",
    ]
    for block in blocks:
        lines += [f"{len(block)} beginbfrange", *block, "endbfrange"]
    lines += ["endcmap", "CMapName currentdict /CMap defineresource pop", "end", "end"]
    return "\n".join(lines).encode()


def _page_object(page: Page, content: int, pictures: Sequence[int]) -> bytes:
    width, height = page.size
    named = "".join(f"/I{place} {number} 0 R" for place, number in enumerate(pictures))
    resources = f"<</Font<</F {_FONT} 0 R>>/XObject<<{named}>>>>"
    return (
        f"<</Type/Page/Parent {_PAGES} 0 R/MediaBox[0 0 {width:g} {height:g}]/Resources{resources}"
        f"/Contents {content} 0 R>>"
    ).encode()


def _content(page: Page) -> bytes:
    parts = ["0.5 w"]
    for place, bitmap in enumerate(page.bitmaps):
        parts.append(
            f"q {bitmap.width:.2f} 0 0 {bitmap.height:.2f} {bitmap.x:.2f} {bitmap.y:.2f} cm /I{place} Do Q"
        )
    parts += [f"{x:.2f} {y:.2f} m {to_x:.2f} {to_y:.2f} l S" for x, y, to_x, to_y in page.rules]
    for run in page.runs:
        codes = visual_order(run.text).encode("utf-16-be")
        if len(codes) != 2 * len(run.text):
            raise ValueError(f"only characters of the basic plane can be set: {run.text!r}")
        parts.append(f"BT /F {run.size:g} Tf {run.x:.2f} {run.y:.2f} Td <{codes.hex()}> Tj ET")
    return "\n".join(parts).encode()


def _picture_object(bitmap: Bitmap) -> bytes:
    """ValueError when there are more or fewer pixels than its sides say."""
    if len(bitmap.pixels) != bitmap.columns * bitmap.rows:
        raise ValueError(f"{bitmap.columns} x {bitmap.rows} pixels wanted, {len(bitmap.pixels)} given")
    head = (
        f"/Type/XObject/Subtype/Image/Width {bitmap.columns}/Height {bitmap.rows}"
        "/ColorSpace/DeviceGray/BitsPerComponent 8"
    )
    return _stream(bitmap.pixels, head)


def _stream(content: bytes, head: str = "") -> bytes:
    packed = zlib.compress(content, 6)
    return f"<<{head}/Filter/FlateDecode/Length {len(packed)}>>\nstream\n".encode() + packed + b"\nendstream"


def _file(objects: dict[int, bytes]) -> bytes:
    """Objects 1 to n, the table of their offsets, and the trailer."""
    written = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number in range(1, len(objects) + 1):
        offsets.append(len(written))
        written += f"{number} 0 obj\n".encode() + objects[number] + b"\nendobj\n"
    start = len(written)
    count = len(objects) + 1
    written += f"xref\n0 {count}\n0000000000 65535 f \n".encode()
    written += b"".join(f"{offset:010d} 00000 n \n".encode() for offset in offsets)
    written += (
        f"trailer\n<</Size {count}/Root {_CATALOG} 0 R/Info {_INFO} 0 R>>\nstartxref\n{start}\n%%EOF\n"
    ).encode()
    return bytes(written)
