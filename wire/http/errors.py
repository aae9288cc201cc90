"""What can become of a call in place of an answer."""


class NoConnection(Exception):
    """None could be made: the request was not received."""


class Broken(Exception):
    """The connection ended before the answer did, or the answer's body is not in the coding that it says.

    Attributes:
        status: Of the answer, where its head had come.
        headers: Of the answer, as far as they had come; lower-case names.
        body: What had come of it.
        silent: Not a byte came back: most likely the server had closed it before the request came.
    """

    def __init__(self, message: str, *, status: int | None, headers: dict[str, str], body: bytes, silent: bool) -> None:
        super().__init__(message)
        self.status, self.headers, self.body, self.silent = status, headers, body, silent


class Undecodable(Exception):
    """A body is not in the coding that it says, or in one that cannot be read.

    Attributes:
        body: What of it can be told: the plain text so far, or what came.
    """

    def __init__(self, message: str, body: bytes) -> None:
        super().__init__(message)
        self.body = body


class NotHttp(Exception):
    """What came is no HTTP/1.1 answer that can be read."""


class TooLarge(Exception):
    """The answer is larger than the pool's bound."""
