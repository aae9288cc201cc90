"""Fetching addresses that a model chose, without reaching anything of ours.

Only public addresses are connected to: a name is resolved first, every address it has is checked, and the connection
is made to a checked address and no other, so that a name cannot mean one thing when checked and another when used.
Each redirect is checked again. IPv4 inside IPv6, decimal and octal forms, and metadata services are all addresses
like any other here. Bounded in time, size and redirects; no cookies, no proxies, no credentials.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Awaitable[list[str]]]

NAT64 = ipaddress.ip_network("64:ff9b::/96")
DOCUMENTATION = ipaddress.ip_network("3fff::/20")  # RFC 9637
REDIRECTS = (301, 302, 303, 307, 308)


class Refused(ValueError):
    """The address may not be fetched, or could not be; the sentence is for the model."""


@dataclass(frozen=True)
class Page:
    """What came back from the last address. `body` is cut at the limit (`cut`)."""

    url: str
    status: int
    content_type: str
    body: bytes
    cut: bool = False

    @property
    def text(self) -> str:
        charset = self.content_type.partition("charset=")[2].split(";")[0].strip(" \"'") or "utf-8"
        try:
            return self.body.decode(charset, errors="replace")
        except LookupError:
            return self.body.decode(errors="replace")


@dataclass(frozen=True)
class Fetcher:
    """Fetches with GET. `trusted` networks (an internal mirror) are let through although they are not public; `ports`
    are the ones that may be connected to, None for any."""

    timeout_s: float = 10.0  # for everything, redirects included
    most_bytes: int = 1 << 20
    redirects: int = 5
    ports: frozenset[int] | None = frozenset({80, 443})
    trusted: tuple[Network, ...] = ()
    resolve: Resolve | None = None  # host and port to addresses; the machine's own resolver by default

    async def get(self, url: str) -> Page:
        """The page, after redirects. Raises `Refused` for whatever else happens."""
        try:
            async with asyncio.timeout(self.timeout_s):
                return await self._follow(url)
        except TimeoutError:
            raise Refused(f"{url}: no answer within {self.timeout_s:g} s") from None

    async def _follow(self, url: str) -> Page:
        for _ in range(self.redirects + 1):
            target = self._checked_url(url)
            addresses = await self._addresses(target)
            answer = await self._once(target, addresses)
            if isinstance(answer, Page):
                return answer
            try:
                url = str(target.join(URL(answer)))
            except ValueError:
                raise Refused(f"{url} redirects to {answer[:200]!r}, which is no address") from None
        raise Refused(f"{url}: more than {self.redirects} redirects")

    def _checked_url(self, url: str) -> URL:
        try:
            target = URL(url)
            port = target.port
        except ValueError as error:
            raise Refused(f"{url[:200]!r} is no address: {error}") from None
        if target.scheme not in ("http", "https"):
            raise Refused(f"{url[:200]!r}: only http and https addresses can be fetched")
        if not target.host or target.user or target.password:
            raise Refused(f"{url[:200]!r}: an address has a host, and no user or password")
        if self.ports is not None and port not in self.ports:
            raise Refused(f"port {port} of {target.host} may not be fetched from")
        return target.with_fragment(None)

    async def _addresses(self, target: URL) -> list[Address]:
        """Every address of the host, each of which may be connected to."""
        host, port = str(target.raw_host).rstrip("."), int(target.port or 80)
        literal = _literal(host)
        if literal is not None:
            found = [literal]
        else:
            try:
                told = await (self.resolve or _resolved)(host, port)
            except OSError:
                raise Refused(f"there is no host {host!r}") from None
            found = [ipaddress.ip_address(each.partition("%")[0]) for each in told]
        if not found:
            raise Refused(f"there is no host {host!r}")
        for each in found:
            if not self._may(each):
                raise Refused(f"{host!r} is not on the public internet and may not be fetched")
        return found

    def _may(self, address: Address) -> bool:
        inner = _inside(address)
        if any(inner.version == network.version and inner in network for network in self.trusted):
            return True
        return public(address) and public(inner)

    async def _once(self, target: URL, addresses: Sequence[Address]) -> Page | str:
        """One request to one of `addresses`; the page, or where it redirects to."""
        connector = aiohttp.TCPConnector(resolver=_Fixed(addresses), use_dns_cache=False, force_close=True)
        headers = {"Accept-Encoding": "identity", "User-Agent": "trivium-fetch"}
        literal = len(addresses) == 1 and _literal(str(target.raw_host)) is not None
        url = target.with_host(str(addresses[0])) if literal else target  # decimal forms are not left to the library
        try:
            async with (
                aiohttp.ClientSession(connector=connector, auto_decompress=False, trust_env=False) as http,
                http.get(url, allow_redirects=False, headers=headers) as answer,
            ):
                if answer.status in REDIRECTS and "Location" in answer.headers:
                    return answer.headers["Location"]
                body = await _bounded(answer.content, self.most_bytes)
                kind = answer.headers.get("Content-Type", "")
                cut = len(body) > self.most_bytes
                return Page(str(target), answer.status, kind, body[: self.most_bytes], cut)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Refused(f"{target} could not be fetched: {type(error).__name__}") from error


def public(address: Address) -> bool:
    """Whether anyone on the internet means the same host by it."""
    if isinstance(address, ipaddress.IPv6Address) and (address.is_site_local or address in DOCUMENTATION):
        return False  # counted as global by Python 3.11
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _inside(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for (mapped, compatible, 6to4, Teredo, NAT64), else itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64 or (int(address) < 2**32 and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)


def _literal(host: str) -> Address | None:
    """The address that a host name is by itself, in every form that a resolver takes: 127.1, 2130706433, 0x7f000001."""
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        pass
    if not host or not all(part.isalnum() and part[0].isdigit() for part in host.split(".")):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


async def _resolved(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


async def _bounded(content: aiohttp.StreamReader, most: int) -> bytes:
    body = bytearray()
    async for chunk in content.iter_chunked(65536):
        body += chunk
        if len(body) > most:
            break
    return bytes(body)


class _Fixed(AbstractResolver):
    """Resolves every name to the addresses that were checked."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._addresses = addresses

    async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=str(each),
                port=port,
                family=socket.AF_INET if each.version == 4 else socket.AF_INET6,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for each in self._addresses
        ]

    async def close(self) -> None:
        """Nothing is held."""
