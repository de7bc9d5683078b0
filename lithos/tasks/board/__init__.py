"""Task board that carries out task commands in the coordinator's transaction.

Only this package may import it. It never commits a transaction.
"""

ROLE = "actor"
