"""`trivium collect`: rows in, scored lines out; the servers that it takes are started and stopped with it."""

import asyncio
import sys
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from rollouts import moment, sources
from rollouts import stack as stacks
from rollouts import token as tokens
from rollouts.collect import Inputs, check_inputs
from rollouts.collect import collect as collect_
from rollouts.commands.arguments import split
from rollouts.interrupt import Interrupt, handled
from rollouts.launcher import Running, launched
from rollouts.plan import Plan, Reporter
from rollouts.progress import Patient, reporter
from rollouts.settings import RolloutsSettings
from rollouts.stack import AGENT, Stack
from rollouts.summary import Summary
from wire.client import Client
from wire.errors import UsageError

LOG_COLUMNS = 120  # of the table where there is no terminal
Option = typer.Option


def collect(
    arguments: Annotated[
        list[str], typer.Argument(metavar="CONFIG… [KEY=VALUE…]", help="Config files or bundled names.")
    ],
    input: Annotated[
        Path | None, Option("--input", metavar="FILE", help="Rows to play; else rollouts.dataset.")
    ] = None,
    output: Annotated[
        Path | None, Option("--output", metavar="FILE", help="Where lines go; else results/NAME.jsonl.")
    ] = None,
    repeats: Annotated[int | None, Option(help="Rollouts per row.")] = None,
    concurrency: Annotated[int | None, Option(help="Rollouts in flight at once.")] = None,
    limit: Annotated[int | None, Option(help="Only the first so many rows.")] = None,
    attempts: Annotated[int | None, Option(help="Tries of a rollout that fails for a passing cause.")] = None,
    max_failures: Annotated[int | None, Option(help="Stop after so many failed rollouts.")] = None,
    order: Annotated[str | None, Option(help="`task`: groups finish early; `repeat`: every row once first.")] = None,
    fresh: Annotated[bool, Option("--fresh", help="Start anew; without it an existing output is resumed.")] = False,
    agent_url: Annotated[
        str | None, Option(metavar="URL", help="An agent server that runs already; nothing is started.")
    ] = None,
    mix: Annotated[str | None, Option(metavar="A=3,B=1", help="Weights of several environments.")] = None,
    stop_by: Annotated[str | None, Option(metavar="TIME", help="23:30, 2026-11-29T23:30, +90m: end by then.")] = None,
    verbose: Annotated[bool, Option("--verbose", "-v", help="Show what the servers log.")] = False,
    set_: Annotated[list[str] | None, Option("--set", metavar="KEY=VALUE", help="Same as a bare KEY=VALUE.")] = None,
) -> int:
    """Play each row, score it, write one JSON line per rollout; go on where an earlier run stopped.

    Exit status: 0 all well, 1 some rollouts failed or are missing, 2 the config, the rows or the usage is wrong, 130 or 143
    interrupted (a second Ctrl-C stops at once).
    """
    configs, overrides = split(arguments, set_)
    if not configs:
        raise UsageError("collect: name a config, a file or a bundled one such as `workplace`")
    short = {
        "repeats": repeats,
        "concurrency": concurrency,
        "limit": limit,
        "attempts": attempts,
        "max_failures": max_failures,
        "order": order,
        "output": output,
    }
    overrides += [f"rollouts.{key}={value}" for key, value in short.items() if value is not None]
    if agent_url is not None and not agent_url.startswith(("http://", "https://")):
        raise UsageError(f"--agent-url {agent_url}: not a URL; write http://host:port")
    stack = stacks.read(configs, overrides, starting=() if agent_url is not None else stacks.ROOMS)
    plan = Plan(
        sources=sources.sources(stack, given=input, mix=mix, away=agent_url is not None),
        output=Path(str(stack.section("rollouts").get("output") or _default_output(configs))),
        settings=stack.config.section("rollouts", RolloutsSettings),
        fingerprint=sources.fingerprint(stack),
        code={} if agent_url is not None else sources.code(stack),
        fresh=fresh,
        stop_by=moment.parse(stop_by, datetime.now().astimezone()) if stop_by else None,
    )
    return run(stack, plan, agent_url=agent_url, verbose=verbose)


def run(stack: Stack, plan: Plan, *, agent_url: str | None = None, verbose: bool = False) -> int:
    """Check the inputs, start what is not given, collect; the exit status."""
    inputs = check_inputs(plan)
    try:
        return asyncio.run(_run(_Run(stack, plan, inputs, agent_url, verbose)))
    finally:
        inputs.close()


@dataclass(frozen=True)
class _Run:
    stack: Stack
    plan: Plan
    inputs: Inputs
    agent_url: str | None
    verbose: bool


async def _run(run: _Run) -> int:
    task = asyncio.current_task()
    assert task is not None
    interrupt = Interrupt(first=task.cancel, again=lambda: None)
    try:
        with handled(interrupt):
            async with AsyncExitStack() as held:
                summary = await _collect(run, interrupt, held)
    except asyncio.CancelledError:
        if interrupt.status is None:
            raise
        return interrupt.status
    return interrupt.status or summary.exit_code


async def _collect(run: _Run, interrupt: Interrupt, held: AsyncExitStack) -> Summary:
    plan = run.plan
    reports = reporter(Patient(soft_wrap=True, width=None if sys.stdout.isatty() else LOG_COLUMNS))
    token = tokens.given() if run.agent_url else tokens.for_stack(run.stack.config.auth)
    if run.agent_url:
        running = Running({AGENT: run.agent_url})
    else:
        running = await held.enter_async_context(_launched(run, token, reports))

    def at_once() -> None:
        plan.stop.request()
        running.kill()

    interrupt.first, interrupt.again = plan.stop.request, at_once
    plan.client = await held.enter_async_context(
        Client(running.urls, token=token, connections=2 * plan.settings.concurrency)
    )
    plan.on_verdict = running.prove
    return await collect_(plan, reports, run.inputs)


def _launched(run: _Run, token: str | None, reports: Reporter) -> AbstractAsyncContextManager[Running]:
    servers = run.stack.servers()
    heard: dict[str, Any] = {"on_line": lambda _, line: reports.note(line)} if run.verbose else {}
    return launched(servers, token=token, elsewhere=run.stack.elsewhere(servers), report=reports.note, **heard)


def _default_output(configs: list[str]) -> Path:
    return Path("results") / ("+".join(Path(each).stem for each in configs) + ".jsonl")
