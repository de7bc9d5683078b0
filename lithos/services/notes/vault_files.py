"""Other files of the vault for people to look at: pictures, papers, tables. Reads are in worker threads."""

from __future__ import annotations

from attrs import frozen

from lithos.actors.blocking import Blocking
from lithos.catalogue.catalogue import Catalogue
from lithos.core.notes.file_names import same_name
from lithos.stores.notes.files import NoteFiles
from lithos.stores.notes.lookup import Attachment, open_attachment

#: Bytes read at once.
CHUNK = 256 * 1024


@frozen
class VaultFiles:
    """Opens files by their path in the notes folder, by the containment rule of notes.

    Specified in docs/spec/notes.md §7.
    """

    _files: NoteFiles
    _catalogue: Catalogue
    _blocking: Blocking

    async def open(self, path: str) -> Attachment | None:
        """An open file, to be closed by the caller; None for what is not there, or not to be shown."""
        return await self._blocking.run(lambda: open_attachment(self._files, path))

    async def named(self, path: str) -> str | None:
        """The path of a file with this name in any folder, as wiki-links name files; None without one."""
        if path not in self._catalogue.files:
            return None
        paths = self._catalogue.files.paths()
        return await self._blocking.run(lambda: same_name(paths, path))

    async def read(self, attachment: Attachment) -> bytes:
        """The next bytes of an open file; empty at its end."""
        return await self._blocking.run(lambda: attachment.file.read(CHUNK))
