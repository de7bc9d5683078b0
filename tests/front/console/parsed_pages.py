"""Pages as a browser parses them, and what none of ours may contain."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Final

from attrs import define, field

#: Script, handlers, addresses, markup that ends what surrounds it, direction marks, a long line.
HOSTILE: Final = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    '\'><a href="javascript:alert(1)">x</a>',
    "</title><script>alert(1)</script>",
    "</textarea></select></form><form action=//evil.example>",
    "<style>*{display:none}</style>",
    "<mark>not a match</mark><iframe srcdoc=x>",
    "\u202egnp.exe\u2066 &lt;b&gt; ${7*7} {{7*7}}",
    "x" * 2_000,
)
_VOID: Final = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr",
))  # fmt: skip


@define
class Element:
    """One element: its name, attributes and text, in document order."""

    name: str
    attributes: dict[str, str]
    text: str = ""


@define
class Page:
    """All elements of a page."""

    elements: list[Element] = field(factory=list)

    def named(self, name: str) -> list[Element]:
        return [element for element in self.elements if element.name == name]

    def with_class(self, name: str) -> list[Element]:
        return [one for one in self.elements if name in one.attributes.get("class", "").split()]

    @property
    def links(self) -> list[str]:
        return [one.attributes.get("href", "") for one in self.named("a")]


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.page.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.page.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop().name != tag:
            pass

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data


def parse(html: str) -> Page:
    """A page, parsed."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    return parser.page


def check_harmless(html: str) -> Page:
    """The page parsed; it runs nothing, and names no other origin and no style of its own."""
    page = parse(html)
    for element in page.elements:
        assert element.name not in ("style", "iframe", "object", "embed", "img", "base"), element
        for name, value in element.attributes.items():
            assert not name.startswith("on"), element
            assert name not in ("style", "srcdoc"), element
            if name in ("href", "src", "action", "formaction"):
                assert not value or value[0] in "/?#", element
                assert not value.startswith("//"), element
    scripts = page.named("script")
    assert all(one.attributes["src"].startswith("/console/static/") and not one.text for one in scripts)
    assert len(page.named("h1")) <= 1
    shown = "".join(one.attributes.get("title", "") for one in page.elements) + page.elements[0].text
    assert not any(mark in shown for mark in "\u202e\u2066\u200b")  # inputs keep what was typed
    return page


def check_labelled(page: Page) -> None:
    """One heading of the first level, every field with a label, every link and button with words."""
    assert len(page.named("h1")) == 1
    labelled = {one.attributes["for"] for one in page.named("label") if "for" in one.attributes}
    fields = [one for one in page.elements if one.name in ("input", "select", "textarea")]
    in_labels = sum(1 for one in page.named("label") if "for" not in one.attributes)
    loose = [
        one
        for one in fields
        if one.attributes.get("type") != "hidden"
        and one.attributes.get("id") not in labelled
        and "aria-label" not in one.attributes
    ]
    assert len(loose) == in_labels, loose
    for one in page.elements:
        if one.name in ("a", "button"):
            assert one.text.strip() or one.attributes.get("aria-label"), one
