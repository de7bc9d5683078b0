"""`lithos brief`: what `lithos_context` tells, for a person, and for a hook of a client.

`lithos.cli` dispatches to it.
Never here: what a briefing holds; the server decides.
"""
