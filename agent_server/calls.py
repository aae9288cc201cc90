"""The calls of one turn: run in order, or together where the environment says they may; results always in call order."""

import asyncio
import time
from collections.abc import Coroutine, Iterator
from typing import Any

from agent_server.session import Session
from wire.errors import Failed
from wire.responses import Item

CUT_OFF = "cut_off"  # status of a call that got no result before the episode ended


async def run_calls(session: Session, calls: list[Item]) -> None:
    """Run a turn's calls and record their outputs in the transcript.

    Raises:
        Failed: a call's server failed; calls after it are not made.
    """
    transcript = session.transcript
    step = len(transcript.steps) - 1
    records = [transcript.add_call(call.get("name"), 0.0, CUT_OFF) for call in calls]
    began = time.perf_counter()
    try:
        for batch in _batches(calls, session.toolbox.parallel):
            running = [_run(session, calls[index], f"{step}.{index}", records[index]) for index in batch]
            transcript.items += [await running[0]] if len(running) == 1 else await _together(running)
    finally:
        transcript.steps[-1]["tool_s"] = time.perf_counter() - began


async def _run(session: Session, call: Item, call_id: str, record: dict[str, Any]) -> Item:
    began = time.perf_counter()
    try:
        result = await session.call_tool(call.get("name"), call.get("arguments"), call_id)
    except Failed as error:
        record["status"] = error.kind
        raise
    finally:
        record["s"] = time.perf_counter() - began
    record["status"] = result.status
    return {"type": "function_call_output", "call_id": call.get("call_id") or call.get("id"), "output": result.text}


def _batches(calls: list[Item], parallel: frozenset[str]) -> Iterator[range]:
    """Index ranges of neighbours that may run together; a call that may not is alone in its range."""
    start = 0
    while start < len(calls):
        end = start + 1
        if calls[start].get("name") in parallel:
            while end < len(calls) and calls[end].get("name") in parallel:
                end += 1
        yield range(start, end)
        start = end


async def _together(running: list[Coroutine[Any, Any, Item]]) -> list[Item]:
    tasks = [asyncio.ensure_future(each) for each in running]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
