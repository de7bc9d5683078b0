"""The settings of the journal and of event delivery."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from lithos.kernel.configuration.rules import setting, whole
from lithos.kernel.configuration.sections import SettingsSection


@frozen(kw_only=True)
class EventsConfig:
    """Settings of the journal and of event delivery."""

    journal_size: int = setting(
        100_000,
        "Maximum number of events in the journal. The oldest events are also deleted if the journal is "
        "larger than both 16 MiB and 2,560 bytes times this number.",
        whole(1, 1_000_000_000),
    )
    audit_days: int = setting(
        90, "Number of days for which `/audit` keeps records of reads.", whole(1, 36_500)
    )
    audit_rows: int = setting(
        1_000_000, "Maximum number of accesses that `/audit` keeps.", whole(1, 1_000_000_000)
    )
    event_buffer_size: int = setting(
        500,
        "Number of recent events kept in memory, so that fewer events are read from the journal.",
        whole(1, 1_000_000),
    )
    subscriber_queue_size: int = setting(
        100,
        "Maximum number of events that a subscriber can be behind before its stream is closed.",
        whole(1, 1_000_000),
    )
    max_sse_clients: int = setting(
        50, "Maximum number of simultaneous clients of `/events`. 0 allows none.", whole(0, 100_000)
    )
    max_ws_clients: int = setting(
        50, "Maximum number of simultaneous clients of `/events/ws`. 0 allows none.", whole(0, 100_000)
    )


SETTINGS: Final = (
    SettingsSection(
        "events",
        EventsConfig,
        place=90,
        retired={
            "events.enabled": "every change is an event in the journal",
            "events.sse_enabled": "set events.max_sse_clients to 0 to allow no client of /events",
            "events.ws_enabled": "set events.max_ws_clients to 0 to allow no client of /events/ws",
        },
    ),
)
