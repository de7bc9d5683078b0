"""A check whether a network address is public.

Documents of strangers are fetched only from public addresses.
"""

from __future__ import annotations

import ipaddress
from typing import Final

#: IPv6 networks that contain an IPv4 address, and the bit position of that address (from the right).
_CARRIERS: Final = (
    (ipaddress.IPv6Network("::ffff:0:0/96"), 0),
    (ipaddress.IPv6Network("::ffff:0:0:0/96"), 0),
    (ipaddress.IPv6Network("::/96"), 0),
    (ipaddress.IPv6Network("64:ff9b::/96"), 0),
    (ipaddress.IPv6Network("2002::/16"), 80),
)
#: Private networks that some versions of the standard library do not count as private.
_MORE: Final = tuple(
    map(
        ipaddress.ip_network,
        ("100.64.0.0/10", "192.88.99.0/24", "198.18.0.0/15", "64:ff9b:1::/48", "2001::/23", "fec0::/10"),
    )
)


def is_public(text: str) -> bool:
    """Return whether a text is an address outside of all private networks and of this machine."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return False
        for network, shift in _CARRIERS:
            if address in network:
                return is_public(str(ipaddress.IPv4Address(int(address) >> shift & 0xFFFF_FFFF)))
    if any(address.version == each.version and address in each for each in _MORE):
        return False
    return address.is_global and not address.is_multicast
