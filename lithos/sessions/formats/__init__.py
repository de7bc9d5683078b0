"""The formats of transcripts: each module turns the records of one client into turns.

The actor of `sessions` imports it.
Opening files does not belong here. A record may have any form: no module here may raise an error for it.
"""

ROLE = "model"
