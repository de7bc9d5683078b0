"""The catalogue: keys, order and counts, compared with a naive model."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.notes.catalogue.catalogue import Catalogue, Entry, UniqueKeys
from lithos.notes.catalogue.note_graph import LinkCounts
from lithos.notes.links.links import LinkTable
from lithos.notes.model.paths import slug_of
from tests.fakes import make_entry


@pytest.fixture
def catalogue():
    return Catalogue()


def test_catalogue_finds_notes_by_id_path_and_serial_number(catalogue):
    entry = make_entry(3, "a/b.md")
    catalogue.put(entry)
    assert catalogue.get(entry.note.id) is catalogue.at_path("a/b.md") is catalogue.at_serial(3) is entry
    assert entry.note.id in catalogue
    assert len(catalogue) == 1
    assert catalogue.get("x") is catalogue.at_path("x") is catalogue.at_serial(9) is None


def test_serial_numbers_are_never_reused(catalogue):
    catalogue.load([make_entry(5), make_entry(2)])
    assert catalogue.take_serial() == 6
    catalogue.reserve_serials(9)
    catalogue.reserve_serials(3)
    assert [catalogue.take_serial(), catalogue.take_serial()] == [10, 11]


def test_notes_are_listed_in_the_order_of_first_indexing(catalogue):
    catalogue.load([make_entry(2, "a.md"), make_entry(1, "z.md"), make_entry(3, "b.md")])
    catalogue.put(make_entry(1, "z.md", title="Renamed"))
    catalogue.put(make_entry(4, "0.md"))
    assert [entry.serial for entry in catalogue] == [1, 2, 3, 4]


def test_first_path_gets_slug_and_url_regardless_of_loading_order(catalogue):
    one = make_entry(9, "a.md", title="Same", source_url="https://x.org")
    other = make_entry(1, "b.md", title="same!", source_url="https://x.org")
    catalogue.load([other, one])
    assert catalogue.slugs.owner("same") == one.note.id
    assert catalogue.urls.owner("https://x.org") == one.note.id
    assert (catalogue.slugs.surplus, catalogue.urls.surplus) == (1, 1)


def test_next_claimant_gets_a_released_slug(catalogue):
    one, other = make_entry(1, title="Same"), make_entry(2, title="Same")
    catalogue.load([one, other])
    catalogue.put(attrs.evolve(one, note=attrs.evolve(one.note, title="Else")))
    assert catalogue.slugs.owner("same") == other.note.id
    assert catalogue.slugs.owner("else") == one.note.id
    assert catalogue.slugs.surplus == 0
    catalogue.remove(other.note.id)
    assert catalogue.slugs.owner("same") is None


def test_updated_note_keeps_its_slug(catalogue):
    one, other = make_entry(1, title="Same"), make_entry(2, title="Same")
    catalogue.load([one, other])
    catalogue.put(attrs.evolve(one, note=attrs.evolve(one.note, version=2)))
    assert catalogue.slugs.owner("same") == one.note.id


def test_cleared_url_can_be_used_again(catalogue):
    entry = make_entry(1, source_url="https://x.org")
    catalogue.put(entry)
    catalogue.put(attrs.evolve(entry, note=attrs.evolve(entry.note, source_url=None)))
    assert catalogue.urls.owner("https://x.org") is None


def test_tags_are_counted_once_per_note_until_the_last_removal(catalogue):
    catalogue.put(make_entry(1, tags=("a", "a", "b")))
    catalogue.put(make_entry(2, tags=("a",)))
    assert catalogue.tags.counts() == {"a": 2, "b": 1}
    catalogue.put(make_entry(1, tags=("c",)))
    catalogue.remove(make_entry(2).note.id)
    assert catalogue.tags.counts() == {"c": 1}


def test_both_notes_are_found_after_they_swap_files(catalogue):
    one, other = make_entry(1, "a.md"), make_entry(2, "b.md")
    catalogue.load([one, other])
    catalogue.put(attrs.evolve(one, path="b.md"))
    catalogue.put(attrs.evolve(other, path="a.md"))
    assert catalogue.at_path("a.md").note.id == other.note.id
    assert catalogue.at_path("b.md").note.id == one.note.id


def test_note_with_a_new_serial_number_replaces_its_old_entry(catalogue):
    catalogue.put(make_entry(1, id="same"))
    catalogue.put(make_entry(7, id="same"))
    assert catalogue.at_serial(1) is None
    assert [entry.serial for entry in catalogue] == [7]
    assert catalogue.stamps() == {7: catalogue.at_serial(7).stamp}


def test_removing_an_unknown_note_changes_nothing(catalogue):
    assert catalogue.remove("x") is None


def test_link_counts_include_placeholders_and_follow_every_change(catalogue):
    catalogue.put(make_entry(1, "a.md", links=("b", "b", "nowhere", "nowhere", "elsewhere")))
    catalogue.put(make_entry(2, "b.md", links=("a",)))
    assert catalogue.graph.counts() == LinkCounts(nodes=4, edges=4, unresolved=3)
    catalogue.put(make_entry(3, "nowhere.md"))
    assert catalogue.graph.counts() == LinkCounts(nodes=4, edges=4, unresolved=1)
    catalogue.remove(make_entry(2).note.id)
    assert catalogue.graph.counts() == LinkCounts(nodes=4, edges=3, unresolved=3)


def test_entry_stamp_changes_only_with_path_or_bytes():
    entry = make_entry(1)
    assert attrs.evolve(entry, serial=2, identified=False).stamp == entry.stamp
    assert attrs.evolve(entry, path="z.md").stamp != entry.stamp
    assert attrs.evolve(entry, digest="00").stamp != entry.stamp
    assert 0 <= entry.stamp < 2**63


def test_key_ownership_passes_to_claimants_in_the_order_of_claims():
    claims = UniqueKeys()
    for note_id in "abc":
        claims.add("k", note_id)
    assert (claims.owner("k"), claims.surplus) == ("a", 2)
    claims.discard("k", "b")
    claims.discard("k", "a")
    assert (claims.owner("k"), claims.surplus) == ("c", 0)


# -- comparison with a naive model -------------------------------------------------------------------


@attrs.define
class Twin:
    """Naive model of the catalogue.

    The model stores a list of entries and rebuilds the key queues from the history.
    """

    entries: dict[str, Entry] = attrs.field(factory=dict)
    queues: dict[tuple[str, str], list[str]] = attrs.field(factory=dict)

    def keys(self, entry: Entry) -> set[tuple[str, str]]:
        keys = {("slug", slug_of(entry.note.title, entry.note.id))}
        return keys | ({("url", entry.note.source_url)} if entry.note.source_url else set())

    def put(self, entry: Entry) -> None:
        old = self.entries.get(entry.note.id)
        before, after = self.keys(old) if old else set(), self.keys(entry)
        for key in before - after:
            self.queues[key].remove(entry.note.id)
        for key in after - before:
            self.queues.setdefault(key, []).append(entry.note.id)
        self.entries[entry.note.id] = entry

    def remove(self, note_id: str) -> None:
        entry = self.entries.pop(note_id, None)
        for key in self.keys(entry) if entry else ():
            self.queues[key].remove(note_id)

    def link_counts(self) -> LinkCounts:
        table = LinkTable()
        for entry in self.entries.values():
            table.add(entry.note.id, entry.path, entry.note.title, entry.note.aliases)
        links = [
            (e.note.id, target, table.resolve(target)) for e in self.entries.values() for target in e.links
        ]
        lost = [target for _, target, found in links if found is None]
        edges = {(source, found or f"[[{target}]]") for source, target, found in links}
        return LinkCounts(len(self.entries) + len(set(lost)), len(edges), len(lost))


words = st.sampled_from(["one", "two", "three"])
urls = st.sampled_from([None, "https://a.org", "https://b.org"])
puts = st.builds(
    lambda serial, title, url, tags, links: make_entry(
        serial, title=title, source_url=url, tags=tuple(tags), links=tuple(links)
    ),
    st.integers(1, 5),
    words,
    urls,
    st.lists(words, max_size=3),
    st.lists(st.one_of(words, st.sampled_from(["n1", "n2", "n3", "n4"])), max_size=3),
)
removals = st.integers(1, 5)


@given(st.lists(st.one_of(puts, removals), max_size=25))
def test_catalogue_equals_a_naive_model_after_random_changes(history):
    catalogue, twin = Catalogue(), Twin()
    for step in history:
        if isinstance(step, int):
            note_id = make_entry(step).note.id
            catalogue.remove(note_id)
            twin.remove(note_id)
        else:
            catalogue.put(step)
            twin.put(step)
    assert {entry.note.id: entry for entry in catalogue} == twin.entries
    assert catalogue.tags.counts() == Counter(tag for e in twin.entries.values() for tag in set(e.note.tags))
    for (kind, key), queue in twin.queues.items():
        claims = catalogue.slugs if kind == "slug" else catalogue.urls
        assert claims.owner(key) == (queue[0] if queue else None)
    for kind, claims in (("slug", catalogue.slugs), ("url", catalogue.urls)):
        assert claims.surplus == sum(max(len(q) - 1, 0) for (k, _), q in twin.queues.items() if k == kind)
    assert catalogue.stamps() == {entry.serial: entry.stamp for entry in twin.entries.values()}
    assert catalogue.graph.counts() == twin.link_counts()
    assert all(catalogue.at_path(entry.path) == entry for entry in twin.entries.values())


@given(st.lists(puts, max_size=6, unique_by=lambda entry: entry.serial), st.randoms(use_true_random=False))
def test_catalogue_is_independent_of_the_loading_order(entries, random):
    shuffled = list(entries)
    random.shuffle(shuffled)
    one, other = Catalogue(), Catalogue()
    one.load(entries)
    other.load(shuffled)
    assert list(one) == list(other)
    for entry in entries:
        assert one.slugs.owner(entry.slug) == other.slugs.owner(entry.slug)


def test_notes_are_found_by_the_host_of_their_source_url() -> None:
    catalogue = Catalogue()
    one = make_entry(1, source_url="https://e.org/a")
    two = make_entry(2, source_url="https://e.org:81/b")
    catalogue.load([one, two, make_entry(3)])
    first, second = one.note.id, two.note.id
    assert list(catalogue.sites.of("e.org")) == [first, second]
    catalogue.put(make_entry(1, source_url="https://other.org/a"))
    assert (list(catalogue.sites.of("e.org")), list(catalogue.sites.of("other.org"))) == ([second], [first])
    catalogue.put(make_entry(2))
    catalogue.remove(first)
    catalogue.put(make_entry(4, source_url="https://e.org"))
    assert list(catalogue.sites.of("e.org")) == [make_entry(4).note.id]
    assert list(catalogue.sites.of("other.org")) == []


@pytest.mark.parametrize("prefix", ["abcdef", "abcdef-", "abcdefg", "own-id", "xyz"])
def test_id_prefix_finds_all_matching_notes(prefix: str) -> None:
    ids = ["ABCDEF-1", "zebra", "abcdefg-2", "Own-ID", "abcdef-0000", "XYZ"]
    catalogue = Catalogue()
    for serial, each in zip((3, 9, 5, 4, 8, 1), ids, strict=True):
        entry = make_entry(serial, f"{serial}.md")
        catalogue.put(attrs.evolve(entry, note=attrs.evolve(entry.note, id=each)))
    catalogue.remove("zebra")

    def begin(entries):
        return [entry.note.id for entry in entries if entry.note.id.lower().startswith(prefix)]

    assert begin(catalogue.may_begin(prefix)) == begin(catalogue)
    assert "zebra" not in [entry.note.id for entry in catalogue.may_begin("zebra")]


def test_impossible_uuid_prefix_is_rejected_without_a_scan() -> None:
    catalogue = Catalogue()
    for serial in range(1, 4):
        entry = make_entry(serial, f"{serial}.md")
        catalogue.put(attrs.evolve(entry, note=attrs.evolve(entry.note, id=f"0000-{serial}")))
    assert list(catalogue.may_begin("kubernetes")) == []


def test_serial_numbers_are_listed_in_entry_order() -> None:
    catalogue = Catalogue()
    for serial in (3, 9, 5):
        catalogue.put(make_entry(serial, f"{serial}.md"))
    catalogue.remove(catalogue.at_serials([9])[0].note.id)
    assert catalogue.serials() == [entry.serial for entry in catalogue] == [3, 5]
