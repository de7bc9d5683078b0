"""Who may do what: tokens, sign-in for clients elsewhere, consent.

`lithos.app` alone uses it.
Never here: secrets of which a hash would do.
"""
