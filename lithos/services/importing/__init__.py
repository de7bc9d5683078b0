"""Importing: what becomes of the records of a source, note by note, and the report of it.

The command line and the front call it; records come from `stores.importing` or over HTTP.
Never here: reading the formats of sources.
"""
