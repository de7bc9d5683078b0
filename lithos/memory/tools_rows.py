"""The row for a candidate that a briefing leaves out."""

from __future__ import annotations

from lithos.memory.briefing.parts import LeftOut
from lithos.server.tools.serialization import LEFT_OUT, register_row

register_row(LeftOut, has_no_room=LEFT_OUT)
