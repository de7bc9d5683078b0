"""Secrets in texts: keys of providers, private keys, web tokens and passwords, found by their shape and masked.

`text` and packages in higher layers import this package. It must not access files other than its own rules, or
depend on notes. Never here: what becomes of a secret that was found. The callers warn, refuse or mask.
"""

ROLE = "model"
