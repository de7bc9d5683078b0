"""Inverted lists over chunk vectors (IVF): sublinear nearest-neighbour search in large stores.

`VectorIndex` comes in, nobody else; its lock is handed in where rows change meanwhile.
Never here: a copy of the vectors, or a file that may be more than missing.
"""
