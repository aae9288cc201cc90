"""Addresses that a model chose: refused before a packet reaches anything of ours."""

import ipaddress
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest

from resources_server.sandbox.fetch import Fetcher, Refused
from wire.testing import serving

REFUSED = [
    "http://169.254.169.254/",
    "http://[::ffff:169.254.169.254]/",
    "http://[fec0::1]/",
    "http://[3fff::1]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://127.0.0.1:8001/verify",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://0/",
    "http://0.0.0.0/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fd00::1]/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://localhost/",
    "http://localhost./",
    "http://LOCALHOST/",
    "http://１２７.0.0.1/",
    "http://name-that-resolves-to-127.0.0.1.test/",
    "http://mixed.test/",
    "file:///etc/passwd",
    "ftp://example.com/",
    "gopher://127.0.0.1:25/x",
    "http://user:secret@public.test/",
    "http://",
    "not an address",
    "http://[::1",
    "http://public.test:99999/",
    "//public.test/",
    "javascript:alert(1)",
    "http://no-such-name.test/",
]
NAMES = {
    "localhost": ["127.0.0.1"],
    "name-that-resolves-to-127.0.0.1.test": ["127.0.0.1"],
    "mixed.test": ["93.184.216.34", "127.0.0.1"],
    "public.test": ["127.0.0.2"],
}
MIRROR = (ipaddress.ip_network("127.0.0.2/32"),)  # what stands for the public internet here


async def resolve(host: str, port: int) -> list[str]:
    if host.lower() not in NAMES:
        raise OSError("unknown")
    return NAMES[host.lower()]


class Site:
    """An ASGI app that remembers who came."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        self.paths.append(scope["path"])
        status, headers = 200, [(b"content-type", b"text/plain; charset=utf-8")]
        if scope["path"] == "/redirect":
            status, headers = 302, [(b"location", unquote_to_bytes(scope["query_string"]))]
        if scope["path"] == "/loop":
            status, headers = 302, [(b"location", b"/loop")]
        body = b"x" * 3_000_000 if scope["path"] == "/large" else "gr\u00fc\u00df".encode()
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize("url", REFUSED)
async def test_addresses_that_are_not_public_are_refused(url: str) -> None:
    """Private, loopback and metadata addresses in every spelling, names that mean them, other schemes, nonsense."""
    with pytest.raises(Refused):
        await Fetcher(resolve=resolve, trusted=MIRROR, ports=None).get(url)


async def test_public_pages_are_fetched() -> None:
    """By name, from the address that was checked; cut at the limit."""
    site = Site()
    async with serving(site=site) as urls:
        port = urls["site"].rpartition(":")[2]
        here = Fetcher(resolve=here_resolver, trusted=(ipaddress.ip_network("127.0.0.1/32"),), ports=None)
        page = await here.get(f"http://public.test:{port}/a")
        assert (page.status, page.text, page.cut) == (200, "gr\u00fc\u00df", False)
        large = await here.get(f"http://public.test:{port}/large")
        assert (len(large.body), large.cut) == (here.most_bytes, True)
        assert (await here.get(f"http://public.test:{port}/redirect?/b")).url.endswith("/b")
        assert site.paths == ["/a", "/large", "/redirect", "/b"]


async def here_resolver(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


@pytest.mark.parametrize(
    "target",
    ["http://127.0.0.1:{port}/verify", "http://2130706433:{port}/verify", "http://[::ffff:127.0.0.1]:{port}/verify",
     "//127.0.0.1:{port}/verify", "http://localhost:{port}/verify", "file:///etc/passwd"],
)  # fmt: skip
async def test_redirects_are_checked_again(target: str) -> None:
    """A public page that sends us to ourselves: nothing but the first page is asked for."""
    site = Site()
    async with serving(site=site) as urls:
        port = urls["site"].rpartition(":")[2]

        async def first_only(host: str, at: int) -> list[str]:
            return ["::ffff:127.0.0.1"] if host == "public.test" else ["127.0.0.1"]

        trusted = (ipaddress.ip_network("127.0.0.1/32"),)
        fetcher = Fetcher(resolve=first_only, trusted=trusted, ports=None)
        assert (await fetcher.get(f"http://public.test:{port}/a")).status == 200
        strict = OnlyFirst(resolve=first_only, trusted=trusted, ports=None)
        with pytest.raises(Refused):
            await strict.get(f"http://public.test:{port}/redirect?{target.format(port=port)}")
    assert site.paths == ["/a", "/redirect"]


class OnlyFirst(Fetcher):
    """Trusts its networks for the name public.test only, as if that were elsewhere."""

    async def _addresses(self, target: Any) -> Any:
        if target.raw_host == "public.test":
            return await super()._addresses(target)
        return await Fetcher(resolve=self.resolve, ports=None)._addresses(target)


async def test_redirects_end() -> None:
    """A page that redirects to itself is asked for so many times and no more."""
    site = Site()
    async with serving(site=site) as urls:
        port = urls["site"].rpartition(":")[2]
        trusted = (ipaddress.ip_network("127.0.0.1/32"),)
        with pytest.raises(Refused, match="more than 2 redirects"):
            fetcher = Fetcher(resolve=here_resolver, trusted=trusted, ports=None, redirects=2)
            await fetcher.get(f"http://public.test:{port}/loop")


@pytest.mark.parametrize("port", [22, 25, 8001])
async def test_only_web_ports(port: int) -> None:
    """Unless told otherwise."""
    with pytest.raises(Refused, match=f"port {port}"):
        await Fetcher(resolve=here_resolver).get(f"http://example.com:{port}/")
