"""One rollout's side of the resources server: seed, tools, verify, close, with this session's id and cookies and no one else's."""

from collections.abc import Mapping

from wire.client import Client, Reply, Retry
from wire.deadline import Deadline


class World:
    """The resources server as one rollout sees it.

    Args:
        client: Shared by all rollouts; it keeps no cookies.
        server: The resources server's name among the client's addresses.
        session_id: This rollout's; None where the server knows it by cookie or header alone, as another caller has seeded it.
        cookies: Set by the server before, for servers that know a session by its cookie.
        headers: To send with every call.
    """

    __slots__ = ("_client", "_headers", "cookies", "server")

    def __init__(
        self,
        client: Client,
        server: str,
        session_id: str | None,
        cookies: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.server = server
        self.cookies = dict(cookies or {})
        self._client = client
        self._headers = dict(headers or {})
        if session_id is not None:
            self._headers["X-Session-Id"] = session_id

    async def post(
        self, path: str, body: bytes, deadline: Deadline, *, call_id: str | None = None, retry: Retry = Retry.CONNECT
    ) -> Reply:
        """POST to the world; cookies that it sets are kept for its next call.

        Raises:
            CallError: no answer came; an HTTP error status is an answer.
        """
        headers = self._headers
        if call_id is not None or self.cookies:
            headers = dict(headers)
            if call_id is not None:
                headers["X-Call-Id"] = call_id
            if self.cookies:
                headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        reply = await self._client.post(self.server, path, body, headers, deadline=deadline, retry=retry)
        if reply.cookies:
            self.cookies.update(reply.cookies)
        return reply
