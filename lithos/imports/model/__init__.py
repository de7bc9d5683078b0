"""Parsers for formats of other programs. They work on values without side effects.

Only the `imports` package imports this package. It must not use files, clocks, threads or logs.
"""

ROLE = "model"
