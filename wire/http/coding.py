"""Bodies that come compressed although plain ones were asked for."""

import zlib

from wire.http.errors import TooLarge, Undecodable

CODINGS = ("gzip", "x-gzip", "deflate", "br", "zstd", "compress")  # that mean anything
GZIP_OR_ZLIB, RAW_DEFLATE = 47, -15  # zlib's window bits


def decoded(coding: str, body: bytes, most: int) -> bytes:
    """The plain body. A coding that means nothing is passed over.

    Args:
        coding: In lower case.
        body: As it came.
        most: Bytes of the plain body.

    Raises:
        Undecodable: a coding that cannot be read, or a body that is not in it.
        TooLarge: the plain body is.
    """
    if coding not in CODINGS or not body:
        return body
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise Undecodable(f"a body in content-encoding {coding!r}, which was not asked for", body)
    try:
        return _inflated(body, most, GZIP_OR_ZLIB)
    except zlib.error as error:
        if coding == "deflate":
            try:
                return _inflated(body, most, RAW_DEFLATE)
            except zlib.error:
                pass  # the first reason says more
        raise Undecodable(f"a body that is not {coding} as it says: {error}", body) from error


def _inflated(body: bytes, most: int, bits: int) -> bytes:
    texts, size = [], 0
    while body:  # gzip: one member after the other
        made = zlib.decompressobj(bits)
        texts.append(made.decompress(body, max(1, most - size)))
        size += len(texts[-1])
        if made.unconsumed_tail or size > most:
            raise TooLarge(f"more than {most} bytes")
        if not made.eof:
            raise Undecodable("a compressed body that ends early", b"".join(texts))
        body = made.unused_data
    return b"".join(texts)
