"""Clients as a capability: it adds commands alone."""

from __future__ import annotations

from lithos.kernel.capability import Capability

CLIENTS = Capability(name="clients")
