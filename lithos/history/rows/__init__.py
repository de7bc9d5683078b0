"""`history.db`: versions stored as rows and deltas.

Later packages may import this package. Do not make decisions based on versions here.
"""

ROLE = "rows"
