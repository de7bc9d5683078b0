"""Synchronous storage: the only importers of tantivy, usearch, rustworkx, apsw, model2vec and onnxruntime.

Actors change stores; services read them through handles. Every method may block.
Never here: trio, mailboxes, or decisions about requests.
"""

from typing import Final

#: The mode of new folders that hold what notes and agents say: nobody but the owner looks into them.
PRIVATE_FOLDER: Final = 0o700
