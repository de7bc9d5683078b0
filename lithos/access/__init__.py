"""Who may do what: tokens, sign-in for clients elsewhere, consent.

`lithos.app` alone may enter.
Never here: secrets of which a hash would do.
"""
