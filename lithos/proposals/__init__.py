"""Changes that agents propose and a person approves or rejects.

Only `app` imports this package. Do not change notes without approval here.
"""
