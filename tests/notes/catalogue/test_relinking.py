"""Note moves in random vaults with all forms of links.

Link targets stay the same, and moving back restores all bytes.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import attrs
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.relinking import LinkPlan, plan_links
from lithos.notes.files.values import FileState, digest_of
from lithos.notes.format.document import derive_id, parse_document
from lithos.notes.links.edit import relink, relink_own
from lithos.notes.links.links import targets_in
from lithos.text.yaml.vault_style import VaultStyle

NOW: Final = datetime(2026, 11, 28, tzinfo=UTC)
STYLE: Final = VaultStyle.of_foreign()
FOLDERS: Final = ("t/a/x", "t/a/y", "u/b/x", "u/b/z z")
ANYWHERE: Final = ("", "a", "a/b", "c/b", "c/a/b", "c/a/b/d")
#: Path of a file that is not a note.
PICTURE: Final = "t/a/pics/p 1.png"
NAMES: Final = ("Plan", "2026-11-28", "🚀 Launch", "café (1)", "Ann's: plan", "v1.2")
#: Link forms: the note's name, its path, the end of its path, and its path relative to the linking note.
FORMS: Final = (
    "[[{stem}]]", "[[{path}]]", "[[{path}.md#Part|t]]", "![[{tail}]]", "[[{relative}]]", "[[/{path}|t [1]]]",
    "[t](<{plain}>)", "[t](<{plain}.md> 'title')", "[t]({quoted})", "[t]({quoted}.md#p)",
    "![p](<{picture}>)", "![p]({picture_quoted})", "[t][r]\n\n[r]: {quoted}.md", "[r]\n\n[r]: <{plain}>\n",
    "| [[{path}\\|t]] |", "> [!x] [[{tail}|t]]",
)  # fmt: skip
#: Frontmatter properties with links to notes, quoted where YAML requires quotes.
PROPERTIES: Final = (
    'a: "[[{path}]]"', "b: '[[{single}|t]]'", "c: [\"[[{tail}]]\", 'x']", "d:\n  - '[t](<{splain}.md>)'",
    "e: {{f: \"[[{relative}]]\"}}",
)  # fmt: skip
#: Characters that must be escaped in a link destination without angle brackets.
_QUOTED: Final = re.compile(r"[ ()]")
#: Text that only resembles links, and links to missing files. A move never changes them.
FIXED: Final = (
    "\n\n    [[{path}]] [t]({quoted})\n\n`[[{path}]]` <!-- [[{path}]] -->\n```\n[[{relative}]]\n```\n"
    "[[Missing]] [t](Missing.md) [[./Missing]] [a](tag:x) arr[[0]] [[deep/er/Missing]]\n"
)


def values_of(target: str, source: str) -> dict[str, str]:
    """Return the values for `FORMS` when the note `source` links to the note `target`."""
    path = target.removesuffix(".md")
    relative = posixpath.relpath(path, posixpath.dirname(source))
    relative = relative if relative.startswith("../") else f"./{relative}"
    plain = relative.removeprefix("./")
    picture = posixpath.relpath(PICTURE, posixpath.dirname(source))
    return {
        "stem": path.rpartition("/")[2],
        "path": path,
        "tail": "/".join(path.split("/")[-2:]),
        "relative": relative,
        "plain": plain,
        "quoted": _quote(plain),
        "picture": picture,
        "picture_quoted": _quote(picture),
        "single": path.replace("'", "''"),
        "splain": plain.replace("'", "''"),
    }


def _quote(path: str) -> str:
    return _QUOTED.sub(lambda each: f"%{ord(each[0]):02X}", path)


def join(folder: str, name: str) -> str:
    return posixpath.join(folder, f"{name}.md")


@st.composite
def vaults(draw: st.DrawFn, folders: tuple[str, ...] = FOLDERS, *, are_unique: bool = True) -> dict[str, str]:
    """Draw a vault: a mapping from paths to texts. The notes are in some folders and have links of all forms.

    If `are_unique` is true, each file name is drawn only once.
    """
    names = draw(st.lists(st.sampled_from(NAMES), min_size=2, unique=are_unique, max_size=7))
    paths = list(dict.fromkeys(join(draw(st.sampled_from(folders)), name) for name in names))
    files: dict[str, str] = {}
    for path in paths:
        wanted = draw(st.lists(st.tuples(st.sampled_from(FORMS), st.sampled_from(paths)), max_size=4))
        heads = draw(st.lists(st.sampled_from(PROPERTIES), max_size=3, unique=True))
        head = [each.format(**values_of(draw(st.sampled_from(paths)), path)) for each in heads]
        body = [form.format(**values_of(target, path)) for form, target in wanted]
        fixed = FIXED.format(**values_of(draw(st.sampled_from(paths)), path))
        front = "---\n" + "\n".join(head) + "\n---\n" if head else ""
        text = f"{front}é " + "\n\nText.\n\n".join(body) + fixed
        files[path] = text.replace("\n", "\r\n") if draw(st.booleans()) else text
    return files


def entry_of(path: str, text: str, note_id: str, serial: int) -> Entry:
    data = text.encode()
    document = parse_document(data, path, NOW, note_id, STYLE)
    return Entry(
        serial, path, document.note, digest_of(data), FileState(len(data), 1), False,
        targets_in(data, document.content, path),
    )  # fmt: skip


class Vault:
    """A vault whose notes are moved as the note writer moves them."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = dict(files)
        self.ids = {path: derive_id(path) for path in files}
        self.catalogue = Catalogue(style=STYLE)
        self.catalogue.load([self._entry(path) for path in files])

    def _entry(self, path: str) -> Entry:
        return entry_of(
            path, self.files[path], self.ids[path], sorted(self.ids.values()).index(self.ids[path])
        )

    def edges(self) -> set[tuple[str, str | None, str]]:
        """Return all links as (source, resolved note or None, target text or None)."""
        resolve = self.catalogue.graph.resolve
        entries = [entry for note_id in self.ids.values() if (entry := self.catalogue.get(note_id))]
        targets = [(entry.note.id, resolve(target), target) for entry in entries for target in entry.links]
        return {
            (source, found, "" if found else posixpath.basename(target)) for source, found, target in targets
        }

    def move(self, old: str, new: str) -> LinkPlan:
        before = self.catalogue.at_path(old)
        assert before is not None
        note_id = self.ids[old]
        after = attrs.evolve(entry_of(new, self.files[old], note_id, before.serial), serial=before.serial)
        plan = trio.run(plan_links, self.catalogue, before, after)
        moved = plan.relinking
        self.files[new], self.ids[new] = self.files.pop(old), self.ids.pop(old)
        for path, text in list(self.files.items()):
            there = {*self.files, PICTURE}.__contains__
            if path == new:
                data = relink_own(text.encode(), moved, there, only_broken=False)
            elif self.ids[path] in plan.sources:
                data = relink(text.encode(), path, moved, there)
                assert relink(data, path, moved, there) == data
            else:
                assert relink(text.encode(), path, moved, there) == text.encode()
                continue
            self.files[path] = data.decode()
        self.catalogue.put(after)
        for path in self.files:
            self.catalogue.put(self._entry(path))
        return plan


def fixed_parts(files: Mapping[str, str]) -> list[str]:
    """Return the parts of all files that contain no links, sorted."""
    return sorted(
        text.replace("\r\n", "\n").partition("\n\n    [[")[2].partition("[[Miss")[0]
        for text in files.values()
    )


@given(vaults(), st.data())
@settings(deadline=None)
def test_move_keeps_link_targets_and_moving_back_restores_bytes(
    files: dict[str, str], data: st.DataObject
) -> None:
    """behaviour 375"""
    vault = Vault(files)
    before = vault.edges()
    old = data.draw(st.sampled_from(sorted(files)))
    name = data.draw(
        st.sampled_from(
            ["Goal", "2027", "é %20 (x)", "it's, {x}: y", old.rpartition("/")[2].removesuffix(".md")]
        )
    )
    new = f"{data.draw(st.sampled_from(FOLDERS))}/{name}.md"
    if new in files:
        return
    vault.move(old, new)
    assert vault.edges() == before
    assert fixed_parts(vault.files) == fixed_parts(files)
    vault.move(new, old)
    assert vault.files == files
    assert vault.edges() == before


@given(vaults(ANYWHERE, are_unique=False), st.data())
@settings(deadline=None)
def test_moves_between_all_folders_keep_link_targets(files: dict[str, str], data: st.DataObject) -> None:
    """behaviour 375, even if several notes share a name. Links then need longer paths than before."""
    vault = Vault(files)
    before = {(source, found) for source, found, _ in vault.edges() if found is not None}
    old = data.draw(st.sampled_from(sorted(vault.files)))
    new = join(data.draw(st.sampled_from(ANYWHERE)), data.draw(st.sampled_from(NAMES)))
    if new not in vault.files:
        vault.move(old, new)
    assert before <= {(source, found) for source, found, _ in vault.edges()}
