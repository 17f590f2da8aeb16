"""Ranges of addresses in access control entries, as Kafka 4.4 has them (KIP-1276): `10.0.0.0/8`, `2001:db8::/32`."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address

from pykafkad import errors
from pykafkad.errors import KafkaError

FIRST_LEVEL = 32
"""The level of metadata.version from which on such entries may be created (4.4-IV1)."""


def check(host: str, level: int) -> None:
    """Raises `KafkaError` for the host of a new entry that Kafka 4.4 refuses; `level` is that of metadata.version."""
    if not host:
        raise KafkaError(errors.INVALID_REQUEST, "The host of an entry cannot be empty")
    if "/" in host:
        if level < FIRST_LEVEL:
            text = f"A range of addresses needs level {FIRST_LEVEL} of metadata.version; the cluster has {level}"
            raise KafkaError(errors.UNSUPPORTED_VERSION, text)
        if network(host) is None:
            text = f"{host!r} is no range of addresses: 10.0.0.0/8 and 2001:db8::/32 are"
            raise KafkaError(errors.INVALID_REQUEST, text)


def network(host: str) -> IPv4Network | IPv6Network | None:
    """The range that an entry's host names; None if it names none. Bits behind the prefix do not count."""
    address, slash, prefix = host.partition("/")
    # Python takes a mask in place of a prefix, too, and digits of other scripts.
    if not slash or not (prefix.isascii() and prefix.isdecimal()) or len(prefix) > 3:
        return None
    try:
        if ":" not in address:
            # Kafka takes leading zeros, and no more than three digits.
            parts = address.split(".")
            if not all(part.isascii() and part.isdecimal() and len(part) <= 3 for part in parts):
                return None
            return IPv4Network(f"{'.'.join(str(int(part)) for part in parts)}/{int(prefix)}", strict=False)
        found = IPv6Network(f"{address}/{int(prefix)}", strict=False)
        # Java takes an IPv4 address in an IPv6 one for IPv4.
        return None if "%" in address or ip_address(address).ipv4_mapped is not None else found  # type: ignore[union-attr]
    except ValueError:
        return None


def contains(range_of: IPv4Network | IPv6Network, client_address: str) -> bool:
    """Whether a client's address lies in a range. No address of one family lies in a range of the other."""
    try:
        return ip_address(client_address) in range_of
    except ValueError:
        return False
