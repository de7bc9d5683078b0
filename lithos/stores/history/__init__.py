"""The store of versions, `.lithos/history.db`: rows and their bytes. It blocks.

`actors/recording` records and prunes through `HistoryStore`; services read (`core.history.versions`).
Never here: what a version is of, when one is made, or which are kept for how long.
"""
