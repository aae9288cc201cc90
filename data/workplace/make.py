"""Makes the company's tables and the rows of `workplace`. `--check` only says whether the committed files are what it would make.

Every row is drawn from its template by a seed of its own. Its ground truth is then carried out in a fresh office: it must change as
much as it has calls, and nothing where it has none.
"""

import argparse
import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT)]

import company  # noqa: E402  its neighbours are found by the line above, from wherever the script is run
import templates  # noqa: E402
from office import Draft, Office, Template, Unfit  # noqa: E402

from resources_server.environments.workplace import Workplace  # noqa: E402

TABLES = ROOT / "resources_server" / "environments" / "workplace" / "tables"
PER_TEMPLATE = 8  # rows
QUIET = (6, 5)  # of them with a false condition, in turn: about 15 % of all rows want no change
TRIES = 3000  # draws for one row; then the template is at fault
VALIDATION_EVERY = 5  # each fifth template is for validation, with all of its rows
EXAMPLE_IDS = (
    "delete_email_by_id-1",  # the easiest first: one call, one tool, everything in the question
    "delete_event_by_id-0",
    "set_due_date_by_id-0",
    "delete_email_by_id-4",
    "send_to_address-1",
    "move_task_by_id-1",
    "set_status_by_id-3",
    "create_meeting-0",
    "reply_to_latest-0",
    "plot_since-0",
    "set_status-0",
    "lose_if_silent-0",  # wants no change
    "book_if_free-7",
    "warn_if_few_engaged-0",  # wants no change
    "reassign_list-0",
    "cancel_and_tell-0",
)

SHORT_SYSTEM = "You are an office assistant. Today is {now:%A}, {now:%Y-%m-%d}. Do what is asked with one tool call, then answer: done."
"""For rows that a very small model is to solve: every further sentence misleads it, and so does every tool but the one it needs."""

SYSTEM = """You are the assistant of a manager at Tern & Vale, with access to her mailbox, calendar, web site analytics, project boards \
and customer relationship manager through tools. It is {now:%A, %B} {now.day}, {now.year}, {now:%H:%M}; everything happens in this year \
unless stated otherwise. Do what she asks right away with the tools: do not ask back, and change nothing that she did not ask for. \
When she makes something depend on a condition that does not hold, change nothing. Meetings last from 9:00 to 18:00 at the latest. \
Look up addresses and ids instead of guessing them. When all is done, say so in a short sentence."""


def table_files() -> dict[Path, bytes]:
    """The company's CSV files."""
    return {
        TABLES / f"{name}.csv": _csv(rows, header=name != "email_addresses") for name, rows in company.tables().items()
    }


def row_files() -> dict[Path, bytes]:
    """The rows: training and validation with different templates, and a few of all kinds as examples."""
    office = Office()
    train: list[dict[str, Any]] = []
    validation: list[dict[str, Any]] = []
    for place, template in enumerate(templates.ALL):
        rows = list(rows_of(template, office, QUIET[place % len(QUIET)] if template.conditional else 0))
        (validation if place % VALIDATION_EVERY == VALIDATION_EVERY - 1 else train).extend(rows)
    by_id = {row["task_id"].removeprefix("workplace-"): row for row in (*train, *validation)}
    return {
        HERE / "train.jsonl": _jsonl(train),
        HERE / "validation.jsonl": _jsonl(validation),
        HERE / "example.jsonl": _jsonl([by_id[name] for name in EXAMPLE_IDS]),
    }


def rows_of(template: Template, office: Office, quiet: int) -> Iterator[dict[str, Any]]:
    """The rows of one template, no two with the same question; the first `quiet` of them want no change."""
    asked: set[str] = set()
    for number in range(PER_TEMPLATE):
        holds = number >= quiet
        draft = _drawn(template, office, number, holds, asked)
        asked.add(draft.query)
        yield row_of(template, number, draft)


def row_of(template: Template, number: int, draft: Draft) -> dict[str, Any]:
    """A data set row. Tool schemas are left out: the session offers those of the toolkits."""
    prompt = SHORT_SYSTEM if template.easy else SYSTEM
    system = {"role": "system", "content": prompt.format(now=company.NOW)}
    row: dict[str, Any] = {
        "task_id": f"workplace-{template.name}-{number}",
        "responses_create_params": {"input": [system, {"role": "user", "content": draft.query}]},
        "toolkits": list(template.toolkits),
        "template": template.name,
        "ground_truth": draft.calls,
    }
    return row | ({"accept": draft.accept} if draft.accept else {})


def _drawn(template: Template, office: Office, number: int, holds: bool, asked: set[str]) -> Draft:
    dice = company.Dice(f"{template.name} {number}")
    for _ in range(TRIES):
        try:
            draft = template.draw(office, dice, holds)
        except Unfit:
            continue
        if draft.query not in asked and bool(draft.calls) == holds:
            _prove(template, draft)
            return draft
    raise SystemExit(f"template {template.name}: {TRIES} draws gave no row {number} (condition holds: {holds})")


def _prove(template: Template, draft: Draft) -> None:
    """Carry the ground truth out and look at what it changed."""
    world = Workplace.of_row({"ground_truth": draft.calls, "accept": draft.accept, "toolkits": list(template.toolkits)})
    world.seed()
    for calls, changes in zip((draft.calls, *draft.accept), world.right(), strict=True):
        if changes.total() != len(calls):
            raise SystemExit(
                f"template {template.name}: {len(calls)} calls make {changes.total()} changes: {draft.query}"
            )
        unknown = {call["name"] for call in calls} - set(world.offered())
        if unknown or len(calls) > 6:
            raise SystemExit(f"template {template.name}: {len(calls)} calls, not offered: {unknown}: {draft.query}")


def _csv(rows: list[company.Row], header: bool) -> bytes:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue().encode()


def _jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def main() -> int:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a file differs")
    check = parser.parse_args().check
    stale = 0
    for make in (table_files, row_files):  # rows are proven in the world that the tables make
        for path, content in make().items():
            if path.is_file() and path.read_bytes() == content:
                continue
            stale += 1
            print(f"{'differs' if check else 'written'}: {path.relative_to(ROOT)} ({len(content)} bytes)")
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
