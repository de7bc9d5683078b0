"""Progress of reading attachments."""

from __future__ import annotations

from attrs import frozen

from lithos.attachments.extraction.actor import Attaching


@frozen
class AttachmentBacklog:
    """The number of attachments that have not been read yet."""

    _attaching: Attaching

    @property
    def waiting(self) -> int:
        """Number of attachments that have not been read yet."""
        return self._attaching.backlog().waiting

    async def known(self) -> bool:
        """Wait until the number of unread attachments is known.

        Return False if reading attachments is switched off.
        """
        if not self._attaching.is_enabled:
            return False
        await self._attaching.surveyed.wait()
        return True
