"""Registered OAuth clients: lifetime and maximum number."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lithos.access.files.clients import CLIENTS, MOST_CLIENTS, UNUSED, ClientsFull, ClientStore
from lithos.access.model.clients import OAuthClient

NOW = datetime(2026, 3, 4, tzinfo=UTC)


def client(name: str, at: datetime = NOW, *, is_added: bool = False) -> OAuthClient:
    return OAuthClient(name, name, ("https://client.example/cb",), at, is_added)


def test_flood_of_registrations_does_not_evict_older_clients(tmp_path: Path) -> None:
    """behaviour 272: at most 500 clients. Clients with a grant and clients added by command are kept."""
    store = ClientStore(tmp_path)
    for number in range(3):
        store.add(client(f"c{number}", is_added=number == 1), (), NOW)
    rows = [client(f"flood-{number}", NOW + timedelta(hours=1)) for number in range(MOST_CLIENTS - 4)]
    store._write([*store.read(), *rows])
    in_use = {"c0"}
    store.add(client("last", NOW + timedelta(hours=1)), in_use, NOW + timedelta(hours=1))
    with pytest.raises(ClientsFull):
        store.add(client("more", NOW + timedelta(hours=2)), in_use, NOW + timedelta(hours=2))
    assert {"c0", "c1", "c2"} <= {each.id for each in store.read()}
    later = NOW + timedelta(hours=1) + UNUSED
    store.add(client("more", later), in_use, later)
    assert [each.id for each in store.read()] == ["c0", "c1", "more"]


def test_clients_with_future_registration_times_are_dropped(tmp_path: Path) -> None:
    store = ClientStore(tmp_path)
    store.add(client("ahead", NOW + timedelta(days=400)), (), NOW + timedelta(days=400))
    store.add(client("now"), (), NOW)
    assert [each.id for each in store.read()] == ["now"]


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"clients": [{}]}', b"[" * 100_000, b"\xff"])
def test_damaged_client_file_counts_as_empty_and_is_rewritten(tmp_path: Path, data: bytes) -> None:
    (tmp_path / CLIENTS).write_bytes(data)
    store = ClientStore(tmp_path)
    assert store.read() == ()
    store.add(client("new"), (), NOW)
    assert store.find("new") == client("new")
