"""Parsed console pages, and checks for forbidden elements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Final

from attrs import define, field

#: Maximum size of a page in bytes (docs/spec/console.md §1).
LARGEST_PAGE: Final = 200_000
_VOID: Final = frozenset(("meta", "link", "input", "br", "hr", "img", "option", "wbr", "source", "col"))
_NEVER: Final = frozenset((
    "iframe", "frame", "frameset", "object", "embed", "applet", "base", "math", "audio", "video", "source",
    "picture", "template", "noembed", "xmp", "plaintext", "marquee", "isindex", "foreignobject", "animate",
    "style", "track", "portal", "noscript",
))  # fmt: skip
_NO_ATTRIBUTES: Final = frozenset(("style", "srcdoc", "srcset", "ping", "background"))
_ADDRESSES: Final = frozenset((
    "href", "src", "action", "formaction", "xlink:href", "poster", "data", "cite",
))  # fmt: skip
_OWN: Final = re.compile(r"/console(?:/|$)|\?|#|$")
#: Allowed link targets in prose: web addresses, mail addresses and relative addresses.
_ELSEWHERE: Final = re.compile(r"https?://|mailto:|(?![\x00-\x20]*[A-Za-z][A-Za-z0-9+.\-\s]*:)")
#: Invisible characters and text-direction characters, which must not be in a name that a page shows.
_HIDDEN: Final = frozenset("\u202e\u202d\u2066\u200b\x00\x07\x1b")


@define(eq=False)
class Element:
    """One HTML element. `prose` is true if the element is inside a text that a person or an agent wrote."""

    tag: str
    attributes: dict[str, str]
    parent: Element | None = field(default=None, repr=False)
    children: list[Element | str] = field(factory=list, repr=False)
    prose: bool = False

    def texts(self) -> Iterator[tuple[str, Element]]:
        """Yield each text inside this element, with its direct parent element."""
        for child in self.children:
            if isinstance(child, str):
                yield child, self
            else:
                yield from child.texts()

    @property
    def text(self) -> str:
        """Text of the element and all its descendants, with white space collapsed."""
        return " ".join("".join(text for text, _ in self.texts()).split())

    @property
    def told(self) -> str:
        """Text of the element like `text`, but with a space between neighbouring elements."""
        return " ".join(" ".join(text for text, _ in self.texts()).split())

    @property
    def links(self) -> list[str]:
        return [one.attributes.get("href", "") for one in self.all("a")]

    def walk(self) -> Iterator[Element]:
        """Yield this element and all its descendants in document order."""
        waiting = [self]
        while waiting:
            one = waiting.pop()
            yield one
            waiting += [child for child in reversed(one.children) if isinstance(child, Element)]

    def all(self, tag: str = "", class_: str = "", **attributes: str) -> list[Element]:
        """Return the descendants that match tag, class and attributes (`data_x` stands for `data-x`)."""
        wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
        return [
            each
            for each in self.walk()
            if (not tag or each.tag == tag)
            and (not class_ or class_ in each.attributes.get("class", "").split())
            and wanted.items() <= each.attributes.items()
        ]

    def has(self, attribute: str) -> list[Element]:
        """Return the descendants that have this attribute."""
        return [each for each in self.walk() if attribute in each.attributes]

    def ancestors(self) -> Iterator[Element]:
        above = self.parent
        while above is not None:
            yield above
            above = above.parent


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in _VOID:
            element = self.open[-1].children[-1]
            assert isinstance(element, Element)
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given, parent = {name: value or "" for name, value in attrs}, self.open[-1]
        is_prose = parent.prose or "prose" in given.get("class", "").split()
        parent.children.append(Element(tag, given, parent, prose=is_prose))

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            places = [place for place, one in enumerate(self.open) if one.tag == tag]
            assert places, f"</{tag}> ends nothing, in {self.open[-1]}"
            del self.open[places[-1] :]

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse(html: str) -> Element:
    """Parse a page or a part of a page, and return its root."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.open[0]


def dangers(root: Element) -> list[str]:
    """Return the elements that could run a script, load a file, change the layout or link to a bad URL."""
    found = []
    for one in root.walk():
        given = one.attributes
        own = one.tag in ("script", "link") and "/console/static/"
        own = own or (one.tag == "img" and "/console/files/")
        if one.tag in _NEVER or (one.tag == "meta" and "http-equiv" in given):
            found.append(f"<{one.tag}>")
        loaded = given.get("src", given.get("href", own if one.tag == "img" else ""))
        if own and (not loaded.startswith(own) or one.children):
            found.append(f"<{one.tag} {given}>")
        for name, value in given.items():
            may_leave = one.tag == "a" and one.prose and _ELSEWHERE.match(value)
            leads = name in _ADDRESSES and not (_OWN.match(value) or may_leave)
            leads = leads or (own and name in _ADDRESSES and ".." in value)
            if name.startswith("on") or name in _NO_ATTRIBUTES or leads:
                found.append(f"<{one.tag} {name}={value!r}>")
    return found


def _shortcomings(root: Element) -> list[str]:
    """Return accessibility errors outside prose, such as fields without labels and duplicate ids."""
    found = []
    labelled = {one.attributes.get("for") for one in root.all("label")} - {None}
    for one in (each for each in root.walk() if not each.prose):
        given = one.attributes
        is_field = one.tag in ("input", "select", "textarea") and given.get("type") != "hidden"
        is_named = given.get("id") in labelled or "aria-label" in given
        if is_field and not is_named and not any(above.tag == "label" for above in one.ancestors()):
            found.append(f"no label: {one}")
        if one.tag in ("a", "button") and not (one.text or given.get("aria-label")):
            found.append(f"no words: {one}")
        if one.tag == "img":
            found.append(f"a picture: {one}")
        if _HIDDEN & set(given.get("title", "") + given.get("aria-label", "")):
            found.append(f"hidden characters: {one}")
    shown = (text for text, one in root.texts() if not one.prose)
    found += [f"hidden characters: {text!r}" for text in shown if _HIDDEN & set(text)]
    ids = Counter(one.attributes["id"] for one in root.has("id") if not one.prose)
    # An id in prose must not repeat an id of the page.
    ids.update({one.attributes["id"] for one in root.has("id") if one.prose})
    return found + [f"twice: {one}" for one, count in ids.items() if count > 1]


def check(html: str, where: object = "") -> Element:
    """Parse a whole page.

    Raise if the page is unsafe, inaccessible, too large, or has no single h1 heading.
    """
    root = parse(html)
    assert not (found := dangers(root)), (where, found[:5])
    assert not (found := _shortcomings(root)), (where, found[:5])
    assert len(root.all("h1")) == 1, (where, root.all("h1"))
    assert len(html.encode()) <= LARGEST_PAGE, (where, len(html.encode()))
    return root
