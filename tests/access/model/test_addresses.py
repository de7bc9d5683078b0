"""Classification of addresses as public or private, including disguised private addresses."""

from __future__ import annotations

import pytest

from lithos.access.model.addresses import is_public


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1", "127.1.2.3", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0",
        "100.64.0.1", "198.18.0.1", "192.0.2.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
        "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "fec0::1", "2001:db8::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "::7f00:1",
        "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::1",
        "2002:0a00:0001::", "2001::1", "::ffff:0:127.0.0.1", "127.0.0.1:80", "localhost",
        "2130706433", "0x7f.1",        "127.1", "", "a.example",
    ],
)  # fmt: skip
def test_private_addresses_are_not_public(text: str) -> None:
    """behaviour 274: covers private, loopback and link-local ranges, also in IPv6 form."""
    assert not is_public(text)


@pytest.mark.parametrize(
    "text", ["1.1.1.1", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "2002:0808:0808::1"]
)
def test_public_addresses_are_public(text: str) -> None:
    assert is_public(text)
