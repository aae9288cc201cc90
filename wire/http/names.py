"""The addresses of hosts."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from typing import Any

KEPT_S = 60.0  # for which a host's addresses are kept

Addresses = list[tuple[Any, Any, int, str, Any]]
"""As getaddrinfo gives them."""


class Names:
    """The addresses of hosts, looked up once for all who ask at a time, and kept for a while."""

    def __init__(self) -> None:
        self.look_up: Callable[..., Awaitable[Addresses]] | None = None  # for tests; else the loop's own
        self._known: dict[tuple[str, int], tuple[float, asyncio.Future[Addresses]]] = {}

    async def of(self, host: str, port: int) -> Addresses:
        """Raises OSError where there are none."""
        loop = asyncio.get_running_loop()
        key, now = (host, port), loop.time()
        if (literal := _literal(*key)) is not None:
            return literal
        until, asked = self._known.get(key, (0.0, None))
        if asked is None or now >= until or (asked.done() and (asked.cancelled() or asked.exception() is not None)):
            look_up = self.look_up or loop.getaddrinfo
            asked = asyncio.ensure_future(look_up(*key, type=socket.SOCK_STREAM))
            asked.add_done_callback(_seen)
            self._known = {name: kept for name, kept in self._known.items() if now < kept[0]}
            self._known[key] = now + KEPT_S, asked
        return await asyncio.shield(asked)


def _seen(asked: "asyncio.Future[Addresses]") -> None:
    """Its failure is told to those who wait; there may be none left."""
    if not asked.cancelled():
        asked.exception()


def _literal(host: str, port: int) -> Addresses | None:
    """The address that a host is, where it is one."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if address.version == 4:
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port))]
    return [(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port, 0, 0))]
