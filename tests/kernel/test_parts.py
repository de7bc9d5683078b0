"""Lookup and creation of server parts by class."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from attrs import field, frozen

from lithos.app.capabilities import CAPABILITIES, makers, stores_of
from lithos.app.stores import close_stores, open_stores
from lithos.history.rows.store import HistoryStore
from lithos.history.settings import HistoryConfig
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.parts import Parts, made_by, needs_of
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.findings import CHECK_MODULES, load_checks


class Disk:
    """A part without a constructor."""


@frozen
class Shelf:
    """A part with fields."""

    _disk: Disk
    books: int = 3
    labels: dict[str, str] = field(factory=dict)


class Library:
    """A part with a constructor."""

    def __init__(self, shelf: Shelf, guard: Guard | None, *, disk: Disk) -> None:
        self.shelf, self.guard, self.disk = shelf, guard, disk


class Guard:
    """A guard that only some libraries have."""


def no_guard(disk: Disk) -> Guard | None:
    return None


class Egg:
    def __init__(self, hen: Hen) -> None:
        self.hen = hen


class Hen:
    def __init__(self, egg: Egg) -> None:
        self.egg = egg


def test_part_is_created_once_from_its_constructor_parameters() -> None:
    parts = Parts((Library, Shelf, Disk, no_guard))
    library = parts.get(Library)
    assert library is parts.get(Library)
    assert library.shelf is parts.get(Shelf)
    assert library.disk is parts.get(Disk)
    assert library.guard is None


def test_part_passed_to_the_server_is_not_created_again() -> None:
    disk = Disk()
    assert Parts((Library, Shelf, Disk), {Disk: disk}).get(Library).disk is disk


def test_optional_parameter_gets_none_for_a_missing_part() -> None:
    assert Parts((Library, Shelf, Disk)).get(Library).guard is None
    with pytest.raises(LookupError, match="No maker returns Shelf"):
        Parts((Library, Disk)).get(Library)


def test_part_parameter_keeps_its_default_without_another_source() -> None:
    assert Parts((Shelf, Disk)).get(Shelf).books == 3
    assert Parts((Shelf, Disk), {int: 5}).get(Shelf).books == 5


def test_error_names_the_parts_of_a_circular_dependency() -> None:
    with pytest.raises(LookupError, match="Egg -> Hen -> Egg"):
        Parts((Egg, Hen)).get(Egg)


def test_no_two_capabilities_create_the_same_part() -> None:
    kinds = [made_by(maker) for maker in makers()]
    assert len(kinds) > 80
    assert len(kinds) == len(set(kinds))


def test_capabilities_have_unique_names() -> None:
    names = [capability.name for capability in CAPABILITIES]
    assert len(names) == len(set(names))


def test_checks_are_imported_on_first_use() -> None:
    names = {name for capability in CAPABILITIES for name in capability.checks}
    assert names <= set(CHECK_MODULES)
    load_checks()
    assert names <= set(sys.modules)


def test_stores_open_after_their_dependencies() -> None:
    places = {made_by(each.open): each.place for each in stores_of()}
    for each in stores_of():
        needed = (kind for kind, _ in needs_of(each.open).values())
        assert all(places[kind] < each.place for kind in needed if kind in places)
    assert list(places.values()) == sorted(set(places.values()))


@pytest.mark.needs("sessions")
async def test_server_starts_without_a_disabled_store(tmp_path: Path) -> None:
    config = Config(storage=StorageConfig(data_dir=tmp_path), history=HistoryConfig(enabled=False))
    stores = open_stores(config)
    close_stores(stores)
    assert stores.opened[HistoryStore] is None
    assert [each.name for each in stores.databases] == [
        "coordination.db", "edges.db", "stats.db", "sessions.db", "manifest.db"
    ]  # fmt: skip
