"""A session's id: named by the caller in a header, or kept by a client that only knows cookies, signed so that none can be made up."""

import hmac
import os
import re
import secrets
from dataclasses import dataclass

from itsdangerous import BadSignature, Signer

from wire.errors import Unauthorized, UsageError

HEADER = b"x-session-id"
SECRET_VARIABLE = "TRIVIUM_SESSION_SECRET"  # so that replicas read each other's cookies; random per start without it
MIN_SECRET_CHARACTERS = 16
ID = re.compile(r"[!-~]{1,256}")  # printable, one line; whoever makes it owes it 128 random bits


@dataclass(frozen=True, slots=True)
class Named:
    """How a request names its session."""

    id: str | None  # None: it names none
    by_header: bool = False


class SessionNames:
    """Reads and issues session ids for one server.

    Args:
        server: The server's name; part of the cookie's, since cookies of one host are sent to all of its ports.
        secret: Key of the signature; `TRIVIUM_SESSION_SECRET`, or random, where none is given.
    """

    def __init__(self, server: str, secret: str | None = None) -> None:
        self.cookie_name = "trivium_" + re.sub(r"[^A-Za-z0-9_]", "_", server)[:64]
        self._prefix = self.cookie_name.encode() + b"="
        given = secret or _configured_secret()
        self._configured = given is not None
        self._signer = _signer(given or secrets.token_bytes(32))

    def share(self, secret: bytes) -> None:
        """Sign with what all replicas have, unless a secret is configured."""
        if not self._configured:
            self._signer = _signer(secret)

    def read(self, headers: dict[bytes, bytes]) -> Named:
        """The session that a request names; the header counts where there is a cookie, too.

        Raises:
            UsageError: The header is no id.
            Unauthorized: The cookie was not signed by this server.
        """
        given = headers.get(HEADER)
        if given is not None:
            session_id = given.decode("latin-1")
            if not ID.fullmatch(session_id):
                raise UsageError("X-Session-Id should be 1 to 256 printable characters without spaces")
            return Named(session_id, by_header=True)
        cookies = headers.get(b"cookie")
        value = self._value(cookies) if cookies else None
        return Named(None if value is None else self.opened(value))

    def opened(self, signed: bytes) -> str:
        """The id in a signed value.

        Raises:
            Unauthorized: It was not signed by this server.
        """
        try:
            return self._signer.unsign(signed).decode("latin-1")
        except BadSignature:
            raise Unauthorized("the session cookie was not signed by this server; seed a session of your own") from None

    def signed(self, session_id: str) -> bytes:
        """A value that `opened` takes back."""
        return self._signer.sign(session_id.encode("latin-1"))

    def cookie(self, session_id: str) -> tuple[bytes, bytes]:
        """The header that makes a client send the session's id with its next request."""
        return (b"set-cookie", self._prefix + self.signed(session_id) + b"; Path=/; HttpOnly; SameSite=lax")

    def _value(self, cookies: bytes) -> bytes | None:
        for each in cookies.split(b";"):
            each = each.strip()
            if each.startswith(self._prefix):
                return each[len(self._prefix) :].strip(b'"')
        return None


def _signer(secret: str | bytes) -> Signer:
    return Signer(secret, salt=b"trivium.session")


def new_session_id() -> str:
    """An id that nobody can guess: 192 random bits."""
    return secrets.token_urlsafe(24)


def rollout_key(token: str, rollout_id: str) -> str:
    """Opens one rollout's own address at the model interface, and nothing else; made by whoever has the stack's token, stored by nobody."""
    return hmac.new(token.encode(), rollout_id.encode(), "sha256").hexdigest()


def _configured_secret() -> str | None:
    secret = os.environ.get(SECRET_VARIABLE)
    if secret and len(secret) < MIN_SECRET_CHARACTERS:
        raise UsageError(f"{SECRET_VARIABLE} has {len(secret)} characters; at least {MIN_SECRET_CHARACTERS} are needed")
    return secret or None
