"""Lithos: one local process through which many AI agents share a Markdown knowledge base."""

__version__ = "0.1.0"
