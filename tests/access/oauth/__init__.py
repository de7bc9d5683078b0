"""Tests of the OAuth flow."""
