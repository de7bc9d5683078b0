"""Changes that agents propose and a person approves or rejects.

Only `app` uses it.
Never here: changes without approval.
"""
