"""Facet postings: their order and number, compared with a check of every note."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, datetime, timedelta

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.kernel.values.projects import ProjectFilter
from lithos.notes.catalogue import facets
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.facets import FacetFilter, Facets
from lithos.notes.model.note_projects import ProjectRules
from lithos.text.words.list_filters import has_tags
from tests.fakes import make_entry
from tests.memory.briefing.test_briefing import calls_of

_DAY = datetime(2026, 1, 1, tzinfo=UTC)
PATHS = ("a.md", "b.md", "ab/a.md", "ab/b.md", "ab/c/a.md", "abc/x.md", "b/ab.md", "b/a/z.md")
TAGS = ("x", "x/y", "x/y/z", "xy", "z", "#x", "#x/y")
NAMESPACES = (None, "ab", "own")
RULES = ProjectRules("project", {"ab": "shop", "AB/c/": "github.com/acme/blog"})
PROPERTIES = (None, "Shop", "github.com/acme/shop", ["blog", "shop"], "[[Blog]]", 7)


def passing(catalogue: Catalogue, wanted: FacetFilter) -> list[int]:
    """Return the serial numbers of all matching notes in listing order, as a reference."""
    return [entry.serial for entry in catalogue if passes(entry, wanted)]


def passes(entry: Entry, wanted: FacetFilter) -> bool:
    note = entry.note
    return (
        has_tags(note.all_tags, wanted.tags)
        and (wanted.author is None or note.author == wanted.author)
        and (wanted.path_prefix is None or entry.path.startswith(wanted.path_prefix))
        and (wanted.since is None or note.updated_at >= wanted.since)
        and (wanted.namespaces is None or entry.namespace in wanted.namespaces)
        and (wanted.project is None or wanted.project.passes(RULES.keys(entry.path, note.extra)))
    )


notes = st.fixed_dictionaries(
    {
        "path": st.sampled_from(PATHS),
        "tags": st.lists(st.sampled_from(TAGS), max_size=3).map(tuple),
        "inline_tags": st.lists(st.sampled_from(TAGS), max_size=2).map(tuple),
        "author": st.sampled_from(("ann", "bob")),
        "title": st.text("aAß\0", max_size=3),
        "namespace": st.sampled_from(NAMESPACES),
        "extra": st.sampled_from(PROPERTIES).map(lambda value: {} if value is None else {"project": value}),
        "expires_at": st.sampled_from((None, _DAY)),
        "updated_at": st.integers(0, 3).map(lambda days: _DAY + timedelta(days=days)),
    }
)
changes = st.lists(
    st.tuples(st.sampled_from(("put", "late", "remove")), st.integers(1, 12), notes), max_size=30
)
filters = st.builds(
    FacetFilter,
    tags=st.lists(st.sampled_from((*TAGS, "x/", "x/y/", "#x", "#x/y", "none")), max_size=2).map(tuple),
    author=st.sampled_from((None, "ann", "nobody")),
    path_prefix=st.sampled_from((None, "", "a", "ab", "ab/", "ab/a", "b/a", "/", "nowhere/")),
    since=st.none() | st.integers(-1, 4).map(lambda days: _DAY + timedelta(days=days)),
    namespaces=st.sampled_from((None, frozenset(), frozenset({"ab"}), frozenset({"own", "default"}))),
    project=st.none()
    | st.builds(ProjectFilter, st.sampled_from(("", "shop", "github.com/acme/shop", "none")), st.booleans()),
)


def entry_of(serial: int, number: int, values: dict) -> Entry:
    fields = dict(values)
    path = fields.pop("path").replace(".md", f"{number}.md")
    entry = make_entry(serial, path)
    return attrs.evolve(entry, note=attrs.evolve(entry.note, id=f"note-{number}", **fields))


def change(catalogue: Catalogue, kind: str, number: int, values: dict) -> None:
    known = catalogue.get(f"note-{number}")
    if kind == "remove":
        catalogue.remove(f"note-{number}")
    elif kind == "late" and known is None:  # The late note gets a serial reserved long before.
        catalogue.reserve_serials(1_000)
        late = next(serial for serial in range(900, 0, -1) if catalogue.at_serial(serial) is None)
        catalogue.put(entry_of(late, number, values))
    else:
        serial = catalogue.take_serial() if known is None else known.serial
        catalogue.put(entry_of(serial, number, values))


@given(loaded=st.lists(notes, max_size=8), history=changes, wanted=filters, offset=st.integers(0, 5))
def test_facet_page_equals_the_result_of_a_full_check(loaded, history, wanted, offset):
    catalogue = Catalogue(projects=RULES)
    catalogue.load([entry_of(20 - number, number, values) for number, values in enumerate(loaded, 1)])
    for kind, number, values in history:
        change(catalogue, kind, number, values)
        for block in catalogue.facets.blocks():
            catalogue.titled(block, "a")  # The call creates title blocks, which later changes must update.
    expected = passing(catalogue, wanted)
    for limit in (0, 2, None):
        found = catalogue.page(wanted, offset, limit)
        end = None if limit is None else offset + limit
        assert (found.serials, found.total) == (expected[offset:end], len(expected))
        assert found.is_exact
    for part in ("", "a", "Aa", "ss", "\0", "a\0a"):
        folded, blocks = part.casefold(), catalogue.facets.blocks()
        found = [serial for block in blocks for serial in catalogue.titled(block, folded)]
        assert found == [entry.serial for entry in catalogue if folded in entry.note.title.casefold()]
    keys = {entry.serial: RULES.keys(entry.path, entry.note.extra) for entry in catalogue}
    assert {entry.serial: catalogue.projects.of(entry) for entry in catalogue} == keys
    assert sum(catalogue.projects.counts().values()) == sum(map(len, keys.values()))
    expiring = [entry.serial for entry in catalogue if entry.note.expires_at is not None]
    assert catalogue.facets.expiring() == expiring


@given(st.dictionaries(st.integers(1, 12), notes, max_size=12), st.booleans())
def test_bulk_loaded_postings_equal_individually_added_postings(values, searched):
    found = [Facets(RULES), Facets(RULES)]
    rows = [(serial, entry.path, entry.note) for serial in values
            if (entry := entry_of(serial, serial, values[serial]))]  # fmt: skip
    ordered = rows if searched else sorted(rows, key=lambda row: row[0])
    found[0].load(ordered)
    for row in ordered:
        found[1].add(*row)
    assert vars(found[0]).pop("_titles") is not None
    assert vars(found[1]).pop("_titles") is not None
    projects = [vars(facets).pop("projects") for facets in found]
    assert projects[0].counts() == projects[1].counts()
    tags = [vars(facets).pop("_tags") for facets in found]
    assert tags[0].places == tags[1].places
    below = [[(key, {*kept.below.of(key)}) for key in sorted(kept.below.keys())] for kept in tags]
    assert below[0] == below[1]  # The order of these postings does not matter.
    assert vars(found[0]) == vars(found[1])


@given(loaded=st.lists(notes, max_size=12), wanted=filters)
def test_large_folder_page_may_contain_unchecked_candidates(loaded, wanted):
    catalogue = Catalogue(projects=RULES)
    catalogue.load([entry_of(number, number, values) for number, values in enumerate(loaded, 1)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(facets, "MOST_COMPARED", 1)
        found = catalogue.page(wanted)
    entries = catalogue.at_serials(found.serials)
    assert [entry.serial for entry in entries if passes(entry, wanted)] == passing(catalogue, wanted)


def test_page_filtered_only_by_a_large_folder_is_exact(monkeypatch):
    monkeypatch.setattr(facets, "MOST_COMPARED", 0)
    catalogue = Catalogue()
    for number, path in enumerate(PATHS, start=1):
        catalogue.put(make_entry(number, path))
    for prefix in ("", "ab/", "ab/c/", "b/", "nowhere/"):
        wanted = FacetFilter(path_prefix=prefix)
        page = catalogue.page(wanted, 1, 1)
        assert page.is_exact
        assert page.serials == passing(catalogue, wanted)[1:2]
        assert page.total == len(passing(catalogue, wanted))
    assert not catalogue.page(FacetFilter(path_prefix="ab/c")).is_exact


def test_deleted_notes_leave_no_postings():
    catalogue = Catalogue()
    values = {
        "path": "ab/a.md",
        "tags": ("x",),
        "author": "ann",
        "title": "T",
        "namespace": "own",
        "expires_at": _DAY,
    }
    for number in range(1, 5):
        catalogue.put(entry_of(5 - number, number, values))
    for number in range(1, 5):
        catalogue.remove(f"note-{number}")
    kept = catalogue.facets
    assert len(kept) == 0
    for values_of_kind in (kept._tags, kept._authors, kept._folders, kept._namespaces):
        assert values_of_kind.places == {}
    assert kept._late == kept._late_serials == {}
    assert kept.expiring() == []


def test_page_cost_is_independent_of_catalogue_size():
    """In a catalogue four times as large, a page takes at most twice the calls and memory (issue 19)."""

    def costs(notes: int) -> dict[FacetFilter, tuple[int, int]]:
        catalogue = Catalogue()
        for n in range(1, notes + 1):
            folder = n % 50 if n <= 1_000 else 50  # A page copies its folder, so folder f7 must stay small.
            values = {"path": f"f{folder}/a.md", "tags": ("x", f"t{n % 9}"), "author": f"a{n % 4}"}
            catalogue.put(entry_of(n, n, values))
        found = {}
        for wanted in (
            FacetFilter(), FacetFilter(tags=("x",)), FacetFilter(author="a1"), FacetFilter(path_prefix="f7/"),
        ):  # fmt: skip
            assert catalogue.page(wanted, 10, 50).serials
            tracemalloc.start()
            catalogue.page(wanted, 10, 50)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            found[wanted] = (calls_of(lambda wanted=wanted: catalogue.page(wanted, 10, 50)), peak)
        return found

    few, many = costs(1_000), costs(4_000)
    for wanted, least in few.items():
        assert many[wanted][0] < 2 * least[0], wanted
        assert many[wanted][1] < 2 * least[1], wanted
