"""A collector in a process of its own, to be killed: `python -m tests.rollouts.collector_process FOLDER URL REPEATS CONCURRENCY`."""

import asyncio
import sys
from pathlib import Path

from tests.rollouts.runs import Runs


def main() -> None:
    """Go on with the run in a folder."""
    folder, url, repeats, concurrency = sys.argv[1:]
    runs = Runs(Path(folder), url)
    summary = asyncio.run(runs.collect(repeats=int(repeats), concurrency=int(concurrency), attempts=5))
    sys.exit(summary.exit_code)


if __name__ == "__main__":
    main()
