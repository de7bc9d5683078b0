"""Ledger of imported records."""

from __future__ import annotations

from pathlib import Path

from lithos.imports.files.attachments import NAME, ImportLedger, key_of


def test_ledger_contains_all_imported_records(tmp_path: Path) -> None:
    ledger = ImportLedger(tmp_path)
    ledger.load()
    one, two = key_of("jsonl", "1"), key_of("mem0", "1")
    assert one != two
    assert one not in ledger
    ledger.add([one])
    ledger.add([])
    ledger.load()
    assert (one in ledger, two in ledger, "1" in ledger) == (True, False, False)
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600


def test_truncated_end_of_the_ledger_is_ignored_and_repaired(tmp_path: Path) -> None:
    ledger = ImportLedger(tmp_path)
    ledger.add([1, 2])
    with (tmp_path / NAME).open("ab") as file:
        file.write(b"torn")
    ledger.load()
    assert (1 in ledger, 2 in ledger) == (True, True)
    ledger.add([3])
    ledger.load()
    assert [number in ledger for number in (1, 2, 3, 4)] == [True, True, True, False]


def test_ledger_size_is_limited(tmp_path: Path) -> None:
    ledger = ImportLedger(tmp_path, most=10)
    for number in range(100):
        ledger.add([number])
    assert (tmp_path / NAME).stat().st_size <= 80
    ledger.load()
    assert [number in ledger for number in (99, 98, 97, 10)] == [True, True, True, False]
    ledger.add(range(200, 230))
    ledger.load()
    assert [number in ledger for number in (229, 225, 200)] == [True, True, False]


def test_lost_ledger_is_read_as_empty(tmp_path: Path) -> None:
    ledger = ImportLedger(tmp_path)
    ledger.add([1])
    (tmp_path / NAME).unlink()
    ledger.load()
    assert 1 not in ledger
