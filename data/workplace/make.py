"""Makes the company's tables and the rows of `workplace`. `--check` only says whether the committed files are what it would make."""

import argparse
import csv
import io
import sys
from pathlib import Path

import company

HERE = Path(__file__).parent
TABLES = HERE.parent.parent / "resources_server" / "environments" / "workplace" / "tables"


def table_files() -> dict[Path, bytes]:
    """The company's CSV files."""
    return {
        TABLES / f"{name}.csv": _csv(rows, header=name != "email_addresses") for name, rows in company.tables().items()
    }


def _csv(rows: list[company.Row], header: bool) -> bytes:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue().encode()


def main() -> int:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a file differs")
    check = parser.parse_args().check
    stale = 0
    for path, content in table_files().items():
        if path.is_file() and path.read_bytes() == content:
            continue
        stale += 1
        print(f"{'differs' if check else 'written'}: {path.relative_to(HERE.parent.parent)} ({len(content)} bytes)")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
