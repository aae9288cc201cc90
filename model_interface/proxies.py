"""Which proxy a call to a model server takes: never one for this machine or its network, else what the environment says."""

import ipaddress
import urllib.request
from urllib.parse import urlsplit


def proxy_for(url: str) -> str | None:
    """The proxy's URL, or None.

    Loopback, private and link-local addresses, and names without a dot, are never reached through a proxy, whatever `HTTP_PROXY` says:
    on clusters that variable is set for the outside world and `NO_PROXY` is often forgotten.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_internal(host) or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def is_internal(host: str) -> bool:
    """Whether a host is this machine or on its own network, as far as its name or address tells."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal", ".invalid"))
    return address.is_loopback or address.is_private or address.is_link_local or address.is_unspecified
