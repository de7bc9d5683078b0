"""The settings of the journal and its delivery."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from lithos.kernel.configuration.rules import setting, whole
from lithos.kernel.configuration.sections import SettingsSection


@frozen(kw_only=True)
class EventsConfig:
    """The journal and its delivery."""

    journal_size: int = setting(
        100_000, "Events the journal keeps, and 2,560 bytes for each.", whole(1, 1_000_000_000)
    )
    audit_days: int = setting(90, "Days for which `/audit` knows who read what.", whole(1, 36_500))
    audit_rows: int = setting(1_000_000, "Accesses that `/audit` knows at most.", whole(1, 1_000_000_000))
    event_buffer_size: int = setting(
        500, "Recent events held in memory to save journal reads.", whole(1, 1_000_000)
    )
    subscriber_queue_size: int = setting(
        100, "Events a subscriber may fall behind before its stream ends.", whole(1, 1_000_000)
    )
    max_sse_clients: int = setting(50, "Most clients of `/events` at one time.", whole(0, 100_000))
    max_ws_clients: int = setting(50, "Most clients of `/events/ws` at one time.", whole(0, 100_000))


SETTINGS: Final = (
    SettingsSection(
        "events",
        EventsConfig,
        place=90,
        retired={
            "events.enabled": "every change is an event in the journal",
            "events.sse_enabled": "set events.max_sse_clients to 0 to let no client read /events",
            "events.ws_enabled": "set events.max_ws_clients to 0 to let no client read /events/ws",
        },
    ),
)
