"""HTTP/1.1 for whole answers: a request is written in one piece, its answer is read to the end, connections are kept and used again.

On the path of a step aiohttp's client is the largest single cost (90 to 115 us a call on two cores, where this takes 20): this one knows
no redirects, no proxies, no cookies of its own and no streams, so what needs them asks elsewhere. The parser is httptools' (llhttp), which
parses for uvicorn too.
"""

from wire.http.connection import Answer
from wire.http.errors import Broken, NoConnection, NotHttp, TooLarge
from wire.http.pool import Pool
from wire.http.request import Origin, head, lines, merged

__all__ = ["Answer", "Broken", "NoConnection", "NotHttp", "Origin", "Pool", "TooLarge", "head", "lines", "merged"]
