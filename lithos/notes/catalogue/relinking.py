"""Planning of the link changes that a move requires.

The plan contains the links that would break or change their target, with the new link texts.

A link breaks if it leads to another note or nowhere after the move. A link with the old path also breaks:
Lithos would still find the note by its file name, but other programs would not. A link that already contains
the whole new path is not changed, even if it led to another note before the move.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import trio
from attrs import frozen

from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.canvases import CanvasLinks
from lithos.notes.links.edit import UNLINKABLE, Relinking
from lithos.notes.links.links import Key
from lithos.text.words.analysis import normalise

#: Number of link targets that one step checks, which takes about a millisecond.
_AT_ONCE: Final = 100
_SUFFIX: Final = ".md"


@frozen
class LinkPlan:
    """The new link texts, with the ids of the notes and the paths of the canvases that contain the links."""

    relinking: Relinking
    sources: tuple[str, ...]
    canvases: tuple[str, ...] = ()


async def plan_links(
    catalogue: Catalogue,
    old: Entry,
    new: Entry,
    canvases: Sequence[CanvasLinks] = (),
    *,
    takes_back: bool = False,
) -> LinkPlan:
    """Plan the move of `old` to `new`, which is not in the catalogue yet.

    Only the single writer of the catalogue may call this function.

    `takes_back` means that the note was at `new` before. A link with only the file name of `new` then leads
    to the note, too.
    """
    steps = _Planning(catalogue, old, new, canvases, takes_back)
    for number, _ in enumerate(steps.run(), 1):
        if number % _AT_ONCE == 0:
            await trio.lowlevel.checkpoint()
    return steps.result()


def relinked_by(catalogue: Catalogue, old: Entry, path: str) -> tuple[str, ...]:
    """Return the ids of the other notes whose links a move of `old` to `path` would rewrite now.

    The function does not yield to the event loop, so no other change can happen in between.
    """
    steps = _Planning(catalogue, old, attrs.evolve(old, path=path), (), takes_back=False)
    for _ in steps.run():
        pass
    return tuple(each for each in steps.result().sources if each != old.note.id)


class _Planning:  # bounded: ends with its call
    def __init__(
        self,
        catalogue: Catalogue,
        old: Entry,
        new: Entry,
        canvases: Sequence[CanvasLinks],
        takes_back: bool,
    ) -> None:
        self._catalogue, self._old, self._new, self._takes_back = catalogue, old, new, takes_back
        self._canvases = canvases
        self._concerned: dict[str, bool] = {}
        self._keys: frozenset[Key] = catalogue.graph.keys_of(new)
        self._sources: dict[str, None] = {}
        #: For each page of a broken wiki-link, the id of the note to which the link should lead.
        self._meant: dict[str, str] = {}
        self._pages: dict[str, str] = {}
        self._paths: dict[str, str] = {old.path: new.path}

    def run(self) -> Iterator[None]:
        """Check every link target that the move may affect. Yield after each target."""
        graph = self._catalogue.graph
        targets = list(graph.written_like(graph.keys_of(self._old) | self._keys))
        targets = list(dict.fromkeys((*targets, *(each for one in self._canvases for each in one.targets))))
        for target in targets:
            self._concerned[target] = self._look_at(target)
            yield
        for page, note_id in self._meant.items():
            self._pages[page] = self._text_for(page, note_id)
            yield
        for target in targets:
            page = target.partition("#")[0].strip()
            is_other = page in self._pages and target not in self._pages and target != page
            if is_other and graph.resolve(target) != graph.resolve(page):
                self._pages[target] = target  # the note's name contains the `#`, so keep the `#`
            yield

    def result(self) -> LinkPlan:
        """Return the finished plan."""
        moved = Relinking(old=self._old.path, new=self._new.path, pages=self._pages, paths=self._paths)
        followed = [
            each.path
            for each in self._canvases
            if each.reason
            or any(map(moved.was_at, each.files))
            or any(map(self._concerned.get, each.targets))
        ]
        return LinkPlan(moved, tuple(self._sources), tuple(followed))

    def _look_at(self, target: str) -> bool:
        """Process a link target. Return whether links with this target must change."""
        graph = self._catalogue.graph
        meant = graph.resolve(target)
        if meant is None or self._is_whole_again(target):
            return False
        is_path = meant == self._old.note.id and self._is_old_path(target)
        breaks = self._resolve(target) != meant or (meant == self._old.note.id and self._names_place(target))
        if is_path or breaks:
            self._sources.update(dict.fromkeys(graph.writers_of(target)))
            page = target.partition("#")[0].strip()
            page = page if graph.resolve(page) == meant else target
            if target.endswith(_SUFFIX) or page.startswith("/"):
                self._paths.setdefault(page.removesuffix(_SUFFIX) + _SUFFIX, self._path_of(meant))
            if breaks and not page.startswith("/"):
                self._meant[page] = meant
        return is_path or breaks

    def _is_old_path(self, target: str) -> bool:
        """Return whether a target is the complete old path of the note, as in Markdown links."""
        return target.endswith(_SUFFIX) and _folded(target) == _folded(self._old.path)

    def _is_whole_again(self, target: str) -> bool:
        """Return whether a target is the complete new path.

        The target may have led to another note until now.
        """
        page = target.partition("#")[0].strip().removesuffix(_SUFFIX)
        is_placed, page = "/" in page or target.endswith(_SUFFIX), page.removeprefix("/")
        return page == self._new.path.removesuffix(_SUFFIX) and (is_placed or self._takes_back)

    def _resolve(self, target: str) -> str | None:
        """Return the id of the note that a target leads to after the move, or None."""
        return self._catalogue.graph.resolve_if_moved(target, self._new, self._keys)

    def _names_place(self, target: str) -> bool:
        """Return whether a target contains folders of the old path that the new path lacks."""
        page = f"/{_folded(target.partition('#')[0])}"
        old, new = f"/{_folded(self._old.path)}", f"/{_folded(self._new.path)}"
        if page.startswith("//"):
            return page == f"/{old}" != f"/{new}"
        names_old = old.endswith(page) or (old.count("/") > 1 and page.endswith(old))
        return page.count("/") > 1 and names_old and not new.endswith(page)

    def _path_of(self, note_id: str) -> str:
        if note_id == self._new.note.id:
            return self._new.path
        entry = self._catalogue.get(note_id)
        assert entry is not None
        return entry.path

    def _text_for(self, page: str, note_id: str) -> str:
        """Return a link text that leads to the note after the move.

        The new text has folders or a suffix if `page` has them.
        """
        path = self._path_of(note_id).removesuffix(_SUFFIX)
        stem = path.rpartition("/")[2]
        choices = [path, path + _SUFFIX] if "/" in page else [stem, path, path + _SUFFIX]
        was = _folded(self._old.path if note_id == self._new.note.id else path)
        if "/" in page and f"/{was}".endswith(f"/{_folded(page)}") and _folded(page) != was:
            # If `page` has only some of the folders, the new text has the same number of folders.
            choices.insert(0, "/".join(path.split("/")[-page.count("/") - 1 :]))
        if page.endswith(_SUFFIX):
            choices = [choice.removesuffix(_SUFFIX) + _SUFFIX for choice in choices]
        for text in choices:
            if text not in self._meant and not UNLINKABLE & set(text) and self._resolve(text) == note_id:
                return text
        return note_id


def _folded(page: str) -> str:
    """Return a path or link page in its form for comparisons: without suffix, case-folded."""
    return normalise("NFC", page.strip()).removesuffix(_SUFFIX).casefold()
