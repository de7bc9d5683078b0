"""Kinds of attachments, and the extraction of text from their bytes.

Only the `attachments` package imports this package. It must not use files, clocks, threads or logs.
"""

ROLE = "model"
