"""The memory actor: owner of `edges.db` and `stats.db`, one transaction per batch and database.

services/retrieve and services/enrich send it commands.
Never here: scouts or formulas.
"""
