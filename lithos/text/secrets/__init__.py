"""Secrets in texts: keys of providers, private keys, web tokens and passwords, found by shape and masked.

`text` and packages in higher layers import this package. It must not access files other than its own rules,
or depend on notes. Never here: storing, logging or answering with the value of a secret.
"""

ROLE = "model"
