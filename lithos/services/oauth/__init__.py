"""The own authorization server, documents fetched from strangers, and tokens of somebody else's issuer.

`front/oauth` and the console enter; there only with `server.public_url` (docs/spec/connectors.md).
Never here: HTTP as it is answered, pages, or the rules of what may be (core/oauth).
"""
