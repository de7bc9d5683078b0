"""How sources of an import are read into records."""
