"""Listening sockets, bound before any server is started: a busy port is known at once, and a restarted server finds its own again."""

import errno
import os
import socket

from wire.errors import UsageError

BACKLOG = 2048  # connections that wait in the kernel while a server starts, or starts again
ANYWHERE = {
    "0.0.0.0": "127.0.0.1",
    "::": "::1",
    "": "127.0.0.1",
}  # addresses that bind everywhere -> one that reaches them


def listen(name: str, host: str, port: int) -> socket.socket:
    """A socket that listens at `host:port` for the server `name`; port 0 takes any free one.

    It listens at once, because two sockets may be bound to one port while neither listens.

    Raises:
        UsageError: the port is taken, or the address is not this machine's. One line with the server and the address.
    """
    sock = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(BACKLOG)
    except OSError as error:
        if sock is not None:
            sock.close()
        raise UsageError(f"{name} cannot listen at {authority(host, port)}: {_reason(error, name)}") from error
    return sock


def address(sock: socket.socket) -> str:
    """`http://host:port` by which this machine reaches a listening socket."""
    host, port = sock.getsockname()[:2]
    return f"http://{authority(ANYWHERE.get(host, host), port)}"


def authority(host: str, port: int) -> str:
    """`host:port`, with the brackets that an IPv6 address needs."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    return host in ("localhost", "::1") or host.startswith("127.")


def _reason(error: OSError, name: str) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"another program has this port (choose one with {name.partition('.')[0]}.port=N, or port=auto for any free one)"
    if isinstance(error, socket.gaierror):
        return f"{error.strerror} (host is an address of this machine, such as 127.0.0.1 or 0.0.0.0)"
    return os.strerror(error.errno) if error.errno else str(error)
