"""Tests of OAuth models."""
