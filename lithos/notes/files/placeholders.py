"""Placeholders: small files that synchronisation programs create for files that are only in the cloud.

Lithos recognises placeholders by their special names: `.NAME.icloud` of iCloud Drive before macOS 14
(https://eclecticlight.co/2018/01/30/how-icloud-marks-the-place-of-documents-stored-remotely/),
`NAME.nextcloud` and `NAME.owncloud` of virtual files with a suffix (https://github.com/jnweiger/OCFFS), and
`NAME.cloud` of odrive. Lithos treats dataless files of macOS and on-demand files of OneDrive, Dropbox and
Google Drive like other files: they have the file's own name and size, and are downloaded when a program opens
them (Apple's TN3150).
"""

from __future__ import annotations

import errno
import os
from typing import Final

#: Synchronisation programs with the prefix and suffix that they add to a file name.
_NAMES: Final = (
    ("iCloud", ".", ".icloud"),
    ("Nextcloud", "", ".nextcloud"),
    ("ownCloud", "", ".owncloud"),
    ("odrive", "", ".cloud"),
)


class FileInCloud(OSError):
    """Only a placeholder of the file is on this disk. The content is in the cloud."""

    def __init__(self, path: str, program: str, placeholder: str) -> None:
        name = os.path.basename(placeholder)
        super().__init__(
            errno.ENODATA,
            f"the file is only in the cloud, not on this disk ({program} has {name} in its place)",
            path,
        )
        self.program = program
        self.placeholder = name


def find_in_cloud(target: str, path: str) -> FileInCloud | None:
    """Return the error for a missing file with a placeholder. Return None if it has no placeholder.

    `path` is the path that the error message shows.

    Blocks.
    """
    folder, name = os.path.split(target)
    for program, before, behind in _NAMES:
        placeholder = os.path.join(folder, f"{before}{name}{behind}")
        if os.path.lexists(placeholder):
            return FileInCloud(path, program, placeholder)
    return None
