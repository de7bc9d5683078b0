"""Another Lithos's data directory, read and never written: its notes as records, its tables as rows.

The doctor and the import service read it from here.
Never here: what becomes of a row in this knowledge base.
"""
