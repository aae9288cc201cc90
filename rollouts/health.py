"""Whether the server at an address is the one that is meant: 200 from whoever happens to answer there does not count."""

import asyncio

from wire import strict_json


async def is_up(host: str, port: int, name: str, patience_s: float) -> bool:
    """Whether `GET /health` there answers 200, within `patience_s`, with a body that names the server `name`."""
    try:
        async with asyncio.timeout(patience_s):
            status, body = await _get(host, port, "/health")
    except (OSError, TimeoutError, EOFError, ValueError, IndexError):
        return False
    if status != 200:
        return False
    try:
        said = strict_json.loads(body)
    except strict_json.JSONError:
        return False
    return isinstance(said, dict) and said.get("server") == name


async def _get(host: str, port: int, path: str) -> tuple[int, bytes]:
    """Status and body, over a connection of its own: no client library is worth its start-up time for this."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    return int(head.split(b" ", 2)[1]), body
