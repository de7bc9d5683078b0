"""What clients elsewhere ask before they have a token: metadata, register, authorize, token, revoke.

`app/front.py` has them served, with `server.public_url` alone (docs/spec/connectors.md).
Never here: what is allowed and kept (services/oauth), or the page of consent (front/console).
"""
