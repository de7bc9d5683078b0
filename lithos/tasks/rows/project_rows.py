"""Query for the projects of tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from lithos.kernel.databases.database import read_time
from lithos.kernel.databases.table import Rows

# In older files, the metadata may be invalid JSON.
_COUNTS = (
    "SELECT CASE WHEN json_valid(metadata) THEN metadata->'$.project' END, COUNT(*),"
    " SUM(status='open'), MAX(MAX(created_at, COALESCE(resolved_at,''))) FROM tasks GROUP BY 1"
)


class ProjectRows(Rows):
    """Query for the console and the commands. It reads all tasks."""

    def counts(self) -> Iterator[tuple[Any, int, int, datetime | None]]:
        """Yield each value of `metadata.project` with its tasks, open tasks, and the time of the last change.

        The value of tasks without a project is None.
        """
        for value, tasks, is_open, at in self._all(_COUNTS):
            yield None if value is None else json.loads(value), tasks, is_open, read_time(at)
