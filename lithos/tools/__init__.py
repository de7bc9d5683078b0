"""The MCP tools: parameters, results, and the only translation of errors into envelopes."""
