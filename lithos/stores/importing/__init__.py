"""Sources to import from: one module a kind, each reads its files into records and never writes them.

The import service reads records from here.
Never here: what becomes of a record in this knowledge base.
"""
