"""The MCP tools: argument validation, results, and the only translation of errors into envelopes.

The front calls the registry; tools call services.
Never here: transports, or business rules.
"""
