"""What can become of a call in place of an answer."""


class NoConnection(Exception):
    """None could be made: the request was not received."""


class Broken(Exception):
    """The connection ended before the answer did.

    Attributes:
        status: Of the answer, where its head had come.
        body: What had come of it.
        silent: Not a byte came back: most likely the server had closed it before the request came.
    """

    def __init__(self, message: str, *, status: int | None, body: bytes, silent: bool) -> None:
        super().__init__(message)
        self.status, self.body, self.silent = status, body, silent


class NotHttp(Exception):
    """What came is no HTTP/1.1 answer that can be read."""


class TooLarge(Exception):
    """The answer is larger than the pool's bound."""
