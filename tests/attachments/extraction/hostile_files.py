"""Files that harm careless readers: bombs, loops, deep nesting, false sizes, and damaged data.

Each file is created when a test needs it. A size in bytes stands for a sparse file, which is too large to
write.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable, Mapping

from lithos.attachments.model.kinds import FileKind
from tests.attachments.extraction.pdf_files import (
    FONT,
    content,
    document,
    encrypted,
    join,
    packed,
    pdf,
    stream,
)
from tests.attachments.model.lz_codes import compress, of_codes

MB = 1 << 20
Make = Callable[[], bytes | int]


def zeros(size: int, byte: bytes = b"\0") -> bytes:
    """Return `size` equal bytes in compressed form. One stream block is repeated, which is fast."""
    packer = zlib.compressobj(9)
    head = packer.compress(byte * MB) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(byte * MB) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + block * (size // MB - 1) + packer.flush()


def _bomb(size: int = 4096 * MB, byte: bytes = b" ") -> bytes:
    return stream(zlib.compress(zeros(size, byte)), b"/Filter[/FlateDecode/FlateDecode]")


def _one(body: bytes, **options: object) -> bytes:
    return join(document([body], **options))  # type: ignore[arg-type]


def _tree(kids: Callable[[int], bytes], count: int) -> bytes:
    """Return a PDF with a page tree. Its nodes start at object 20 and have the given children."""
    nodes = {20 + place: b"<</Type/Pages/Count 1/Kids[%s]>>" % kids(20 + place) for place in range(count)}
    return join({1: b"<</Type/Catalog/Pages 20 0 R>>"} | nodes)


def _forms(call: Callable[[int], bytes], count: int) -> bytes:
    """Return a PDF whose page draws one form. Further nested forms start at object 100."""
    form = b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</Font<</F1 3 0 R>>/XObject<<%s>>>>"
    named = b"".join(b"/X%d %d 0 R" % (place, 100 + place) for place in range(count))
    forms = {100 + place: stream(call(place), form % named) for place in range(count)}
    return _one(stream(b"/X0 Do"), extra=forms | {4: b"100 0 R"}).replace(b"/X0 4 0 R", b"/X0 100 0 R")


def _to_unicode(cmap: bytes) -> bytes:
    font = FONT.replace(b">>", b"/ToUnicode 5 0 R>>")
    return _one(stream(content("text")), font=font, extra={5: stream(cmap)})


def _type3(glyph: bytes) -> bytes:
    font = (
        b"<</Type/Font/Subtype/Type3/FontBBox[0 0 9 9]/FontMatrix[1 0 0 1 0 0]/FirstChar 65/LastChar 65"
        b"/Widths[9]/CharProcs<</A 5 0 R>>/Encoding<</Differences[65/A]>>/Resources<</Font<</F1 3 0 R>>>>>>"
    )
    return _one(stream(b"BT /F1 9 Tf (AAAA) Tj ET"), font=font, extra={5: stream(glyph)})


def _object_streams() -> bytes:
    """Return a PDF with two bombs: an object stream and a cross-reference stream."""
    table = stream(
        zlib.compress(zeros(1024 * MB)),
        b"/Type/XRef/Size 9/W[1 2 1]/Root 1 0 R/Filter[/FlateDecode/FlateDecode]",
    )
    objects = _bomb().replace(b"<<", b"<</Type/ObjStm/N 9/First 9", 1)
    out = b"%PDF-1.7\n" + b"5 0 obj\n" + objects + b"\nendobj\n"
    return out + b"6 0 obj\n" + table + b"\nendobj\nstartxref\n%d\n%%%%EOF" % len(out)


def _own_table() -> bytes:
    data = join(document([stream(content("good"))]), b"/Root 1 0 R/Prev 000")
    return data.replace(b"/Prev 000", b"/Prev " + data.split()[-2])


def _damaged() -> bytes:
    data, chance = bytearray(pdf("one", "two", "three")), random.Random(7)
    for _ in range(60):
        data[chance.randrange(20, len(data))] = chance.randrange(256)
    return bytes(data)


PDFS: Mapping[str, Make] = {
    "empty": lambda: b"",
    "NULs": lambda: bytes(MB),
    "an image": lambda: b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 500,
    "only a header": lambda: b"%PDF-1.7\n",
    "page 1 is a bomb": lambda: _one(_bomb()),
    "page 2 is a bomb": lambda: join(document([stream(content("good")), _bomb()])),
    "a page in a bomb of one filter": lambda: _one(stream(zeros(300 * MB, b"q "), b"/Filter/FlateDecode")),
    "object and xref streams are bombs": _object_streams,
    "filters without end": lambda: _one(stream(b"x", b"/Filter[" + b"/ASCIIHexDecode" * 100_000 + b"]")),
    "a page tree that is its own kid": lambda: _tree(lambda number: b"20 0 R", 1),
    "a page tree in a circle": lambda: _tree(lambda number: b"%d 0 R" % (20 + (number - 19) % 5), 5),
    "a page tree of kids of kids": lambda: _tree(lambda number: b"%d 0 R " % min(number + 1, 59) * 10, 40),
    "a page tree that is very deep": lambda: _tree(lambda number: b"%d 0 R" % (number + 1), 50_000),
    "a count that lies": lambda: pdf("good").replace(b"/Count 1", b"/Count 2147483647"),
    "a count below zero": lambda: pdf("good").replace(b"/Count 1", b"/Count -7"),
    "pages that are not there": lambda: join(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Count 50000/Kids[%s]>>" % (b"99 0 R " * 50_000),
        }
    ),
    "lists in lists": lambda: join({1: b"<</Type/Catalog/Pages " + b"[" * MB + b">>"}),
    "objects in objects": lambda: join({1: b"<</A" * 300_000}),
    "outlines in a circle": lambda: _one(
        stream(content("good")),
        extra={
            1: b"<</Type/Catalog/Pages 2 0 R/Outlines 5 0 R>>",
            5: b"<</First 6 0 R/Last 6 0 R>>",
            6: b"<</Title(x)/Next 6 0 R/Prev 6 0 R/First 5 0 R>>",
        },
    ),
    "a million objects": lambda: join(
        document([stream(content("good"))], extra=dict.fromkeys(range(20, 1_000_000), b"[1 2 3]"))
    ),
    "a size that lies": lambda: pdf("good").replace(b"/Size 12", b"/Size 2147483647"),
    "tables in a circle": lambda: join(document([stream(content("good"))]), b"/Root 1 0 R/Prev 15"),
    "a table that is its own": _own_table,
    "a page without area": lambda: _one(
        stream(content("good")), page=b"/MediaBox[5 5 5 5]/CropBox[9 0 1 nan]"
    ),
    "20 MB of lines": lambda: _one(packed(b"0 0 m 9 9 l S " * (20 * MB // 14))),
    "20 MB of saved states": lambda: _one(packed(b"q " * (10 * MB))),
    "20 MB of text objects": lambda: _one(packed(b"BT /F1 9 Tf (a) Tj ET " * (20 * MB // 22))),
    "20 MB of text": lambda: _one(packed(b"BT /F1 1 Tf (" + b"abcdefgh " * (2 * MB) + b") Tj ET")),
    "20 MB of numbers": lambda: _one(packed(b"7 " * (10 * MB))),
    "20 MB of open lists": lambda: _one(packed(b"[" * (20 * MB))),
    "20 MB of open dictionaries": lambda: _one(packed(b"/A <<" * (4 * MB) + b"BDC")),
    "contents over and over": lambda: _one(
        b"[" + b"5 0 R " * 100_000 + b"]", extra={5: packed(b"BT /F1 9 Tf (abc) Tj ET " * 5_000)}
    ),
    "a form that shows itself": lambda: _forms(lambda _: b"/X0 Do", 1),
    "forms of forms": lambda: _forms(
        lambda place: b"/X%d Do " % (place + 1) * 10 if place < 11 else b"BT /F1 9 Tf (ha) Tj ET", 12
    ),
    "a glyph that writes itself": lambda: _type3(b"9 0 d0 BT /F1 9 Tf (AAAAAAAA) Tj ET"),
    "a font that is rubbish": lambda: _one(
        stream(content("good")),
        font=b"<</Type/Font/Subtype/TrueType/BaseFont/A/FirstChar 0/LastChar 2147483647/Widths 5 0 R"
        b"/FontDescriptor<</Type/FontDescriptor/FontName/A/Flags 4/FontFile2 6 0 R>>>>",
        extra={5: b"[" + b"9 " * 500_000 + b"]", 6: packed(b"\0\1\0\0\xff\xff" + b"glyf" * 500_000)},
    ),
    "a font that is a bomb": lambda: _one(
        stream(content("good")),
        font=b"<</Type/Font/Subtype/TrueType/BaseFont/A"
        b"/FontDescriptor<</FontName/A/Flags 4/FontFile2 5 0 R>>>>",
        extra={5: _bomb()},
    ),
    "widths of all characters": lambda: _one(
        stream(content("good")),
        font=b"<</Type/Font/Subtype/Type0/BaseFont/A/Encoding/Identity-H/DescendantFonts[<</Type/Font"
        b"/Subtype/CIDFontType2/BaseFont/A"
        b"/CIDSystemInfo<</Registry(A)/Ordering(I)/Supplement 0>>/W 5 0 R>>]>>",
        extra={5: b"[" + b"0 65535 9 " * 200_000 + b"]"},
    ),
    "an encoding that is its own": lambda: _one(
        stream(content("good")),
        font=b"<</Type/Font/Subtype/Type0/BaseFont/A/Encoding 5 0 R/DescendantFonts[3 0 R]>>",
        extra={5: stream(b"begincmap", b"/UseCMap 5 0 R/CMapName/A")},
    ),
    "a broken ToUnicode": lambda: _to_unicode(
        b"begincmap beginbfchar <74> <D8 <65> [[[ endbfrange 7 beginbfrange"
    ),
    "a ToUnicode of everything": lambda: _to_unicode(
        b"begincmap " + b"1 beginbfrange <00000000> <FFFFFFFF> <0000> endbfrange " * 20_000
    ),
    "a ToUnicode of half pairs": lambda: _to_unicode(
        b"1 begincodespacerange <00> <ff> endcodespacerange "
        b"2 beginbfchar <74> <D800> <65> <0000FFFE> endbfchar"
    ),
    "a password": lambda: encrypted("secret", b"word"),
    "a handler that nobody has": lambda: encrypted("secret", b"", b"/Nobody"),
    "damaged here and there": _damaged,
    "it wants to act": lambda: _one(
        stream(content("good")),
        page=b"/MediaBox[0 0 9 9]/AA<</O<</S/JavaScript/JS(app.alert(1))>>>>/Annots[<</Subtype/Link/A<</S/URI"
        b"/URI(http://127.0.0.1:9/)>>>>]",
        extra={
            1: b"<</Type/Catalog/Pages 2 0 R/OpenAction<</S/Launch/F(/bin/sh)>>/AcroForm<</XFA(x)/Fields[]>>"
            b"/Names<</JavaScript<</Names[(a)<</S/JavaScript/JS(while\\(1\\);)>>]>>>>>>"
        },
    ),
    "10,000 pages": lambda: pdf(*("page",) * 10_000),
    "200 MB of holes": lambda: 200 * MB,
    "4 GB of holes": lambda: 4096 * MB,
}


def _nodes(count: int, each: str) -> bytes:
    return ('{"nodes":[' + ",".join([each] * count) + "]}").encode()


def _packed_drawing(body: str) -> bytes:
    return f"# Text Elements\nkept ^abcdefgh\n\n# Drawing\n```compressed-json\n{body}\n```\n".encode()


OTHERS: Mapping[tuple[FileKind, str], Make] = {
    ("canvas", "a nest"): lambda: b"[" * MB,
    ("canvas", "objects in objects"): lambda: b'{"a":' * MB,
    ("canvas", "a million cards"): lambda: _nodes(1_000_000, '{"id":"a","text":"b"}'),
    ("canvas", "five million lists"): lambda: _nodes(5_000_000, "[[]]"),
    ("canvas", "wrong types"): lambda: _nodes(9, '{"id":[],"type":7,"text":{"a":1}}'),
    ("canvas", "bad UTF-8"): lambda: b'{"nodes":[{"text":"\xff\xfe"}]}',
    ("canvas", "huge numbers"): lambda: b'{"nodes":' + b"9" * (20 * MB) + b"}",
    ("canvas", "keys without end"): lambda: json.dumps(dict.fromkeys(map(str, range(500_000)))).encode(),
    ("canvas", "40 MB"): lambda: 40 * MB,
    ("drawing", "a bomb"): lambda: _packed_drawing(of_codes("a", range(4, 9_000))),
    ("drawing", "a packed nest"): lambda: _packed_drawing(compress("[" * 300_000)),
    ("drawing", "truncated"): lambda: _packed_drawing(compress(json.dumps(list(range(5_000))))[:-900]),
    ("drawing", "no Base64"): lambda: _packed_drawing("äöü" * 1_000),
    ("drawing", "fences without end"): lambda: b"```json\n" * 2 * MB,
    ("html", "tags without end"): lambda: b"<div><b>x" * (3 * MB),
    ("html", "a comment without end"): lambda: b"<!--" * (7 * MB),
    ("html", "a huge attribute"): lambda: b"x<a title='" + b"y" * (30 * MB),
    ("html", "half tags"): lambda: b"</a <" * (6 * MB),
    ("html", "references"): lambda: b"&#" + b"9" * (15 * MB) + b"&lt" * (5 * MB),
    ("text", "one line"): lambda: b"x" * (30 * MB),
    ("text", "no lines"): lambda: b"\n" * (30 * MB),
    ("text", "UTF-16 of an odd length"): lambda: b"\xff\xfe" + b"a\n" * MB + b"a",
    ("text", "nothing"): lambda: 30 * MB,
    ("text", "marks"): lambda: b"a" + "\u0301\u0316".encode() * (4 * MB),
    ("text", "hyphens"): lambda: b"a-\n" * (10 * MB),
    ("text", "40 MB"): lambda: 40 * MB,
}


def _picture(entries: bytes, data: bytes) -> bytes:
    image = stream(data, b"/Type/XObject/Subtype/Image/ColorSpace/DeviceRGB/BitsPerComponent 8" + entries)
    return _one(stream(b"600 0 0 700 0 0 cm /X0 Do"), extra={4: image})


PICTURES: Mapping[str, Callable[[], bytes]] = {
    "an image that is a bomb": lambda: _picture(
        b"/Width 30000/Height 30000/Filter[/FlateDecode/FlateDecode]", zlib.compress(zeros(2700 * MB))
    ),
    "an image of two billion": lambda: _picture(b"/Width 2147483647/Height 2147483647", b"x"),
    "a JPEG of rubbish": lambda: _picture(
        b"/Width 999/Height 999/Filter/DCTDecode", b"\xff\xd8" + b"\xff\xda" * 99_999
    ),
    "a JPX of rubbish": lambda: _picture(
        b"/Width 9/Height 9/Filter/JPXDecode", b"\0\0\0\x0cjP  \r\n\x87\n" + b"j" * MB
    ),
    "a JBIG2 of rubbish": lambda: _picture(
        b"/Width 9/Height 9/Filter/JBIG2Decode", b"\0\0\0\1\x30\0\1" + b"\x7f" * MB
    ),
    "a pattern that paints itself": lambda: _one(
        stream(b"/Pattern cs /P0 scn 0 0 612 792 re f"),
        page=b"/MediaBox[0 0 612 792]/Resources<</Pattern<</P0 5 0 R>>>>",
        extra={
            5: stream(
                b"/Pattern cs /P0 scn 0 0 1 1 re f",
                b"/Type/Pattern/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 1 1]/XStep .001/YStep .001"
                b"/Resources<</Pattern<</P0 5 0 R>>>>",
            )
        },
    ),
    "a million curves": lambda: _one(packed(b"0 0 m 9 700 600 1 300 400 c S " * 1_000_000)),
    "a page without bounds": lambda: _one(stream(content("x")), page=b"/MediaBox[0 0 1e38 1e38]"),
    "a page of a hair": lambda: _one(stream(content("x")), page=b"/MediaBox[0 0 1e-30 1e30]"),
    "forms of forms": lambda: bytes(PDFS["forms of forms"]()),
    "the page tree of kids of kids": lambda: bytes(PDFS["a page tree of kids of kids"]()),
}
