"""From rollouts files to one file of samples: lines are read twice, written once, and all accounted for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rollouts.export.conversation import completion_of, prompt_of
from rollouts.export.formats import Format
from rollouts.export.reading import (
    Episode,
    Fault,
    Group,
    GroupKey,
    NotExported,
    Selection,
    Tally,
    episodes,
    groups_of,
    key_of,
)
from rollouts.export.targets import silence_of
from wire import jsonl, strict_json
from wire.errors import UsageError

Record = dict[str, Any]
Groups = dict[GroupKey, Group]
SUFFIXES = (".jsonl", ".json", ".parquet")
PARQUET_BATCH = 1000  # records written at a time


def export(chosen: Format, paths: list[Path], output: Path, selection: Selection) -> Tally:
    """Write the samples of rollouts files; `.parquet` as such, anything else as JSON lines.

    Raises:
        UsageError: an input cannot be read, the output exists as one of them, or Parquet's library is missing.
    """
    if output.resolve() in {path.resolve() for path in paths}:
        raise UsageError(f"{output} is one of the rollouts files; name another one for the samples")
    _refuse_overwriting(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    tally = Tally()
    part = output.with_name(output.name + ".part")  # a reader never sees half a file
    part.unlink(missing_ok=True)
    records = _records(chosen, paths, selection, tally)
    try:
        if output.suffix == ".parquet":
            _write_parquet(part, records)
        else:
            with jsonl.Appender(part) as out:
                for record in records:
                    out.append(record)
        if tally.records or not output.exists():  # nothing in place of something helps nobody
            part.replace(output)
    finally:
        part.unlink(missing_ok=True)
    return tally


def _refuse_overwriting(output: Path) -> None:
    """An earlier export may be replaced; a run, a data set or a program may not."""
    if output.suffix not in SUFFIXES:
        raise UsageError(f"{output}: samples are written as {', '.join(SUFFIXES)}; give the file one of these endings")
    if output.with_name(f"{output.stem}_run.json").exists():
        raise UsageError(f"{output} holds the rollouts of a run; name another file for the samples")
    if not output.is_file() or output.suffix == ".parquet":
        return
    with output.open("rb") as file:
        first = file.readline(1 << 20)
    if first.startswith(b'{"responses_create_params"') and b'"reward"' not in first:
        raise UsageError(f"{output} looks like a data set; name another file for the samples")


def _records(chosen: Format, paths: list[Path], selection: Selection, tally: Tally) -> Iterator[Record]:
    groups = groups_of(paths, counted=selection.counted)
    made = (
        _pairs(chosen, paths, groups, selection, tally)
        if chosen.pair
        else _singles(chosen, paths, groups, selection, tally)
    )
    for record in made:
        tally.records += 1
        yield record


def _singles(chosen: Format, paths: list[Path], groups: Groups, selection: Selection, tally: Tally) -> Iterator[Record]:
    assert chosen.records is not None
    for episode in episodes(paths, groups, selection, tally, grouped=chosen.grouped):
        try:
            yield from chosen.records(episode, selection)
        except NotExported as reason:
            tally.leave_out(episode.place, str(reason))
        except UsageError as error:
            tally.leave_out(episode.place, Fault(str(error)))
        else:
            tally.exported += 1


def _pairs(chosen: Format, paths: list[Path], groups: Groups, selection: Selection, tally: Tally) -> Iterator[Record]:
    """The best and the worst of each group, where they differ by enough; an episode is held until its partner comes."""
    assert chosen.pair is not None
    wanted = _partners(paths, groups, selection)
    waiting: dict[str, Episode] = {}
    for episode in episodes(paths, groups, selection, tally, grouped=False):
        partner = wanted.get(episode.place)
        if reason := _no_partner(episode):
            tally.leave_out(episode.place, reason)
        elif partner is None:
            tally.leave_out(episode.place, "no pair in its group with that gap")
        elif partner not in waiting:
            waiting[episode.place] = episode
        else:
            tally.exported += 2
            worse, better = sorted((waiting.pop(partner), episode), key=_reward)
            yield chosen.pair(better, worse)


def _partners(paths: list[Path], groups: Groups, selection: Selection) -> dict[str, str]:
    """Place of the best of a group to that of the worst, and back; the earliest of equals."""
    ends: dict[Any, list[tuple[float, str]]] = {}
    for episode in episodes(paths, groups, selection, Tally(), grouped=False):
        if _no_partner(episode):
            continue
        reward = (_reward(episode), episode.place)
        best, worst = ends.setdefault(key_of(episode.line), [reward, reward])
        ends[key_of(episode.line)] = [
            reward if reward[0] > best[0] else best,
            reward if reward[0] < worst[0] else worst,
        ]
    pairs = [(best, worst) for best, worst in ends.values() if best[0] - worst[0] >= max(selection.min_gap, 1e-12)]
    return {one: other for (_, best), (_, worst) in pairs for one, other in ((best, worst), (worst, best))}


def _no_partner(episode: Episode) -> str | None:
    """Why an episode is part of no pair, whatever the others are."""
    if silence := silence_of(episode.line):
        return silence
    try:
        prompt_of(episode.line), completion_of(episode.line)
    except UsageError as error:
        return Fault(str(error))
    return None


def _reward(episode: Episode) -> float:
    return float(episode.line["reward"])


def _write_parquet(path: Path, records: Iterator[Record]) -> None:
    """Objects are columns of JSON (`datasets` and Arrow know the type), since tools' arguments have no common structure: as structs each
    record would be given the others' keys."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError("writing .parquet needs pyarrow: pip install 'trivium[parquet]'") from error
    writer = None
    try:
        while batch := [record for _, record in zip(range(PARQUET_BATCH), records, strict=False)]:
            schema = writer.schema if writer else _schema(batch, pa)
            table = pa.Table.from_pylist([_as_text(each) for each in batch], schema=_storage(schema, pa)).cast(schema)
            writer = writer or parquet.ParquetWriter(path, schema)
            writer.write_table(table)
        if writer is None:
            parquet.write_table(pa.table({}), path)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise UsageError(f"these records have no common Parquet schema ({error}); write .jsonl instead") from error
    finally:
        if writer is not None:
            writer.close()


def _schema(batch: list[Record], pa: Any) -> Any:
    """Of the first records: JSON where a value is an object, a list of JSON where it is a list of them."""
    plain = pa.Table.from_pylist([_as_text(each) for each in batch]).schema
    objects = {name for each in batch for name, value in each.items() if isinstance(value, dict)}
    lists = {name for each in batch for name, value in each.items() if _is_objects(value)}
    kinds = {**dict.fromkeys(objects, pa.json_()), **dict.fromkeys(lists, pa.list_(pa.json_()))}
    return pa.schema([(field.name, kinds.get(field.name, field.type)) for field in plain])


def _storage(schema: Any, pa: Any) -> Any:
    """The same with text in place of JSON: what a table is made of before it is cast."""
    text = {pa.json_(): pa.string(), pa.list_(pa.json_()): pa.list_(pa.string())}
    return pa.schema([(field.name, text.get(field.type, field.type)) for field in schema])


def _as_text(record: Record) -> Record:
    return {name: _json(value) for name, value in record.items()}


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return strict_json.dumps(value).decode()
    return [strict_json.dumps(each).decode() for each in value] if _is_objects(value) else value


def _is_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)
