"""Citations of notes by tasks."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen


@frozen
class Citation:
    """A note that the completion of a task cited, by whom and when."""

    task_id: str
    note_id: str
    agent: str
    at: datetime
