"""How long tasks took in another run, or in the one that `--fresh` is about to clear: found again by the digests of their rows."""

from pathlib import Path

from rollouts.fingerprint import Record
from rollouts.journal import beside, read
from rollouts.rows import DIGEST_BYTES
from rollouts.statistics import duration_s
from wire.errors import UsageError

MOST_BYTES = (
    1 << 29
)  # of a rollouts file that is read for its durations: seconds, not minutes, before the first rollout


def of_run(output: Path) -> dict[bytes, float]:
    """Digest of a row to the longest that a rollout of it took; empty where there is no such run, or none that can be read."""
    digests = Record(beside(output, "_run.json"), beside(output, "_run.rows")).digests()
    found: dict[bytes, float] = {}
    if not digests or not output.is_file() or output.stat().st_size > MOST_BYTES:
        return found
    try:
        for _, line in read(output):
            task, seconds = line.get("task_index"), duration_s(line)
            if isinstance(task, int) and task >= 0 and seconds is not None:
                digest = digests[task * DIGEST_BYTES : (task + 1) * DIGEST_BYTES]
                found[digest] = max(seconds, found.get(digest, 0.0))
    except UsageError:
        return found  # a damaged file is another command's to complain about
    return found
