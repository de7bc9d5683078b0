"""Changes that agents propose and a person approves or rejects.

Only `app` imports this package.
It must not apply changes without approval.
"""
