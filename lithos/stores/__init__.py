"""Synchronous storage: the only importers of tantivy, usearch, rustworkx, apsw, model2vec and onnxruntime.

Actors change stores; services read them through handles. Every method may block.
Never here: trio, mailboxes, or decisions about requests.
"""

import os
from pathlib import Path
from typing import Final

#: The mode of new folders that hold what notes and agents say: nobody but the owner looks into them.
PRIVATE_FOLDER: Final = 0o700


def sync_folder(folder: Path) -> None:
    """Sync one folder, so that the names of its files are durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
