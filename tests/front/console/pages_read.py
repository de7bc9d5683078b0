"""Pages as a browser would parse them: elements with their attributes and texts."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

from attrs import define, field

_VOID = frozenset({"meta", "link", "input", "br", "hr", "img", "option", "wbr"})


@define(eq=False)
class Element:
    """One element; `text` is that of everything inside."""

    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(factory=list)

    @property
    def text(self) -> str:
        parts = (child if isinstance(child, str) else child.text for child in self.children)
        return " ".join("".join(parts).split())

    def walk(self) -> Iterator[Element]:
        yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child.walk()

    def all(self, tag: str, class_: str = "", **attributes: str) -> list[Element]:
        """The elements inside with this tag, class and attributes (`data_x` for `data-x`)."""
        wanted = {name.replace("_", "-"): value for name, value in attributes.items()}
        return [
            each
            for each in self.walk()
            if each.tag == tag
            and (not class_ or class_ in each.attributes.get("class", "").split())
            and wanted.items() <= each.attributes.items()
        ]

    def has(self, attribute: str) -> list[Element]:
        """The elements inside with this attribute."""
        return [each for each in self.walk() if attribute in each.attributes]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        place = next(i for i in range(len(self.open) - 1, -1, -1) if self.open[i].tag == tag)
        del self.open[place:]

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read_page(html: str) -> Element:
    """The root of a page or of a piece of one."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.open[0]
