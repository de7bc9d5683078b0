"""Changes that wait for a person: what agents may not write at once.

`lithos.app` alone may enter.
Never here: changes that nobody approved.
"""
