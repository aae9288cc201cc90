"""The first lines of a request, and where it goes."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass

from yarl import URL

from wire.http.errors import NoConnection


@dataclass(frozen=True, slots=True)
class Origin:
    """A server: whom to connect to, and what every request to it begins with."""

    host: str
    port: int
    tls: bool
    authority: str
    """For the `Host` line."""
    credentials: str | None
    """The `Authorization` of a URL that holds a name and a password."""

    @classmethod
    def of(cls, url: URL) -> "Origin":
        """Raises `NoConnection` for what is no http(s) URL."""
        host, port = url.raw_host, url.port
        if url.scheme not in ("http", "https") or not host or not port:
            raise NoConnection(f"{str(url)!r} is no http:// or https:// URL")
        authority = url.raw_authority.rpartition("@")[2]
        named = url.user is not None or url.password is not None
        pair = b64encode(f"{url.user or ''}:{url.password or ''}".encode()).decode()
        return cls(host, port, url.scheme == "https", authority, f"Basic {pair}" if named else None)


def head(method: str, url: URL, headers: Mapping[str, str]) -> str:
    """The first lines of a request, which more of `lines` may follow; a header that is given stands in place of ours.

    Raises:
        ValueError: a header holds a line break.
        NoConnection: what is no http(s) URL.
    """
    origin = Origin.of(url)
    own = {"Host": origin.authority, "Accept-Encoding": "identity"}
    if origin.credentials is not None:
        own["Authorization"] = origin.credentials
    return f"{method} {url.raw_path_qs} HTTP/1.1\r\n" + lines(merged(own, headers))


def lines(headers: Mapping[str, str]) -> str:
    """Header lines. Raises `ValueError` where one holds a line break or a NUL."""
    made = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if made.count("\r") != len(headers) or made.count("\n") != len(headers) or "\0" in made:
        raise ValueError("a header holds a line break or a NUL")
    return made


def merged(headers: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """Both; of one name, whatever its case, that of `others`."""
    named = set(map(str.lower, others))
    return {**{name: value for name, value in headers.items() if name.lower() not in named}, **others}
