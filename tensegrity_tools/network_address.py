"""Check, before a start, whether this computer can listen on an address."""

from __future__ import annotations

import socket

from tensegrity_dynamics.errors import TensegrityError


def check_address(host: str) -> None:
    """Raise TensegrityError if this computer cannot listen on an address."""
    try:
        kind, _, _, _, where = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(kind, socket.SOCK_STREAM) as probe:
            probe.bind(where)
    except OSError as error:
        raise TensegrityError(
            f"the view cannot listen on {host!r} ({error}); give an address of this machine: 127.0.0.1 for browsers "
            "here alone, 0.0.0.0 for those of the network too."
        ) from error
