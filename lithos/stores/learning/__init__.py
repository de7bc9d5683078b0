"""`edges.db` and `stats.db`: typed edges, node statistics, receipts, the enrich queue.

The memory actor writes; services read over a second connection.
Never here: formulas (core/learning).
"""
