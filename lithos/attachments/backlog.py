"""How far the reading of attachments is."""

from __future__ import annotations

from attrs import frozen

from lithos.attachments.extraction.actor import Attaching


@frozen
class AttachmentBacklog:
    """The attachments that wait to be read."""

    _attaching: Attaching

    @property
    def waiting(self) -> int:
        """How many have not been read yet."""
        return self._attaching.backlog().waiting

    async def known(self) -> bool:
        """Wait until it is known how many there are; False where attachments are off."""
        if not self._attaching.is_enabled:
            return False
        await self._attaching.surveyed.wait()
        return True
