"""An outside program plays: it asks the model through our model interface and calls the world's tools itself.

The program is run once per rollout, in a process group and an empty folder of its own, with nothing of our environment but what is
named. It finds the model at `OPENAI_BASE_URL` or `ANTHROPIC_BASE_URL` (its calls are recorded there for this rollout), the tools at
`TRIVIUM_TOOLS_URL` (POST below it, with `X-Session-Id: $TRIVIUM_SESSION_ID`) and over MCP at `TRIVIUM_MCP_URL`. What it did is read from
the record; what it prints is not believed.
"""

import asyncio
import contextlib
import json
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from agent_server import options
from agent_server.agent import Agent, Episode, Request
from agent_server.episode import Transcript
from agent_server.session import Session
from agent_server.settings import AgentServerSettings
from agent_server.turns import cut_off
from wire.errors import Failed
from wire.responses import Item, function_calls, message_text, user_items

TAIL_BYTES = 4096  # of what the program printed, in a failure's message
READ_BYTES = 65536
SAFE_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE")  # nothing secret is in these


class HarnessOptions(BaseModel, extra="forbid"):
    """Which program, and what it gets."""

    command: list[str] = Field(min_length=1)
    """Program and arguments; no shell. `{prompt}` in an argument becomes the task's text, `{request}` the path of a file with the whole
    request as JSON. Where neither is used the text comes on standard input."""
    env: dict[str, str] = {}
    """Variables added to the program's environment."""
    pass_env: list[str] = []
    """Names of our own variables that the program gets too."""
    timeout_s: float | None = Field(None, gt=0)
    """For the program alone; the rollout's budget bounds it in any case."""


class Harness(Agent):
    """Runs the program and reads what it did from the model interface's record."""

    def __init__(self, settings: AgentServerSettings) -> None:
        super().__init__(settings)
        self.options = options.read(HarnessOptions, settings.options, "harness")

    async def run(self, request: Request, session: Session) -> Episode:
        """`completed` when the program ends well, or the outcome of its last model call where that was cut off.

        Raises:
            Failed: `agent_error` when it ends badly or cannot be started, `timeout` when it does not end.
        """
        try:
            code, printed = await self._played(request, session)
        except BaseException:  # also when the time is up or the caller has gone: what was played is kept
            with contextlib.suppress(Failed):
                replay(await session.record(), session.transcript)
            raise
        replay(await session.record(), session.transcript)
        if code != 0:
            raise Failed("agent_error", f"{self.options.command[0]} ended with code {code}: {printed or 'no output'}")
        return session.transcript.episode(cut_off(session.transcript.last) or "completed")

    async def _played(self, request: Request, session: Session) -> tuple[int, str]:
        with tempfile.TemporaryDirectory(prefix="trivium-harness-") as folder:
            path = _written(request, folder)
            prompt = _prompt(request)
            named = [each.replace("{request}", path) for each in self.options.command]
            argv = [each.replace("{prompt}", prompt) for each in named]
            stdin = b"" if argv != self.options.command else prompt.encode(errors="replace")
            environment = self._environment(session, folder)
            try:
                async with asyncio.timeout(self.options.timeout_s):
                    return await _run(argv, stdin, environment, folder)
            except OSError as error:
                if isinstance(error, TimeoutError):
                    raise Failed("timeout", f"{argv[0]} did not end within {self.options.timeout_s:g} s") from error
                raise Failed("agent_error", f"{argv[0]} cannot be started: {error}") from error

    def _environment(self, session: Session, folder: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in (*SAFE_VARIABLES, *self.options.pass_env) if name in os.environ}
        return {**kept, "HOME": folder, "TMPDIR": folder, **_addresses(session), **self.options.env}


def replay(record: list[dict[str, Any]], transcript: Transcript) -> None:
    """Write a program's recorded model calls into a transcript: what was new in each request, then what the model made."""
    known = 0  # items of the conversation up to here
    for number, call in enumerate(record):
        request, response = call.get("request") or {}, call.get("response") or {}
        given = user_items(request.get("input") or [])
        new = given if request.get("previous_response_id") else given[known:]
        if number:
            transcript.items += [item for item in new if _is_new(item)]
            _note_pause(transcript, call)
        made = [item for item in response.get("output") or [] if isinstance(item, dict)]
        reply = {**response, "output": made, "usage": call.get("usage") or response.get("usage")}
        reply.setdefault("trivium", {"tokens": call.get("tokens")})
        transcript.add_reply(reply, float(call.get("started_at") or 0.0), float(call.get("s") or 0.0))
        for each in function_calls(made):
            transcript.add_call(each.get("name"), 0.0, "ok")
        known = (known if request.get("previous_response_id") else 0) + len(given) + len(made)


def _note_pause(transcript: Transcript, call: dict[str, Any]) -> None:
    """The time between two model calls is what the program spent on tools and on itself."""
    before = transcript.steps[-1]
    pause = float(call.get("started_at") or 0.0) - before["started_at"] - before["model_s"]
    before["tool_s"] = max(0.0, pause)


def _is_new(item: Item) -> bool:
    """Whether an item of a request is the program's or a tool's, not the model's own of an earlier turn."""
    kind = item.get("type", "message")
    return kind == "function_call_output" or (kind == "message" and item.get("role") != "assistant")


def _prompt(request: Request) -> str:
    """The task as one text: what the user says, after what the system says."""
    texts = [message_text(item) for item in user_items(request["input"])]
    return "\n\n".join([*filter(None, [request.get("instructions")]), *filter(None, texts)])


def _written(request: Request, folder: str) -> str:
    path = Path(folder, "request.json")
    path.write_text(json.dumps(request), encoding="utf-8")
    return str(path)


def _addresses(session: Session) -> dict[str, str]:
    model = f"{session.model_url}/rollouts/{session.id}"
    found = {
        "OPENAI_BASE_URL": f"{model}/v1",
        "OPENAI_API_KEY": session.model_key,  # good for this address alone
        "ANTHROPIC_BASE_URL": model,
        "ANTHROPIC_API_KEY": session.model_key,
        "TRIVIUM_SESSION_ID": session.id,
    }
    if session.world_url is not None:
        found |= {"TRIVIUM_TOOLS_URL": session.world_url, "TRIVIUM_MCP_URL": f"{session.world_url}/mcp"}
    return found


async def _run(argv: list[str], stdin: bytes, environment: dict[str, str], folder: str) -> tuple[int, str]:
    """Exit code and the end of what was printed to standard error, or else to standard output."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        cwd=folder,
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    with _ended(process.pid):
        feeding = _feed(process.stdin, stdin)
        code, _, out, err = await asyncio.gather(process.wait(), feeding, _tail(process.stdout), _tail(process.stderr))
    return code, (err or out).decode(errors="replace").strip()


@contextlib.contextmanager
def _ended(group: int) -> Iterator[None]:
    """Nothing of the program's process group is left after the block."""
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


async def _feed(stdin: asyncio.StreamWriter, text: bytes) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the program need not read it
        stdin.write(text)
        await stdin.drain()
    stdin.close()


async def _tail(stream: asyncio.StreamReader) -> bytes:
    kept = b""
    while chunk := await stream.read(READ_BYTES):
        kept = (kept + chunk)[-TAIL_BYTES:]
    return kept
