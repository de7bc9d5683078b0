"""Use cases over mailboxes and read handles.

Tools and the front call them; they call actors and read stores and the catalogue.
Never here: MCP schemas, HTTP, or durable state of their own.
"""
