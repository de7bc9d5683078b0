"""Changes that wait for a person: what agents may not write at once.

`lithos.app` alone uses it.
Never here: changes that nobody approved.
"""
