"""The handlers of the model interface: three dialects, streamed or not, plain, captured for a rollout, or with ids on the items."""

import asyncio
import contextlib
import hmac
import time
from collections.abc import AsyncIterator
from typing import Any

from model_interface.calls import Call, Calls, response_object, write
from model_interface.capture import Captures, Record, request_digest
from model_interface.dialects import DIALECTS, RESPONSES, Dialect, json_object
from model_interface.streaming import face, response_events
from wire import strict_json
from wire.app import App, HotReply, HotRequest, StreamReply, no_such_path
from wire.errors import Overloaded, TriviumError, Unauthorized
from wire.responses import TOKEN_FIELDS, user_items
from wire.session import rollout_key

JSON = dict[str, Any]
ROLLOUTS, NEMO_GYM = "/rollouts/", "/ng-rollout/"
WATCH_AFTER_S = 1.0  # a caller that leaves is noticed from here on; most calls are over before


class Routes:
    """The handlers of one server.

    Args:
        app: Where they are registered; for its token.
        calls: What answers.
        captures: The records of rollouts.
    """

    def __init__(self, app: App, calls: Calls, captures: Captures) -> None:
        self._app = app
        self._calls = calls
        self._captures = captures
        self._running: set[asyncio.Task[Any]] = set()

    async def responses(self, request: HotRequest) -> HotReply | StreamReply:
        """POST /v1/responses; on the path of every step."""
        call = self._read(request, request.json())
        if call.stream:
            return await self._streamed(RESPONSES, call, {})
        response = await self._answer(request, call)
        return HotReply(write(call, response))

    async def other(self, request: HotRequest) -> HotReply | StreamReply:
        """POST /v1/chat/completions and /v1/messages."""
        dialect = DIALECTS[request.path]
        return await self._in_dialect(dialect, request)

    async def models(self, _: HotRequest) -> HotReply:
        """GET /v1/models."""
        created = int(time.time())
        names = await self._calls.backend.models()
        data = [{"id": name, "object": "model", "created": created, "owned_by": "trivium"} for name in names]
        return HotReply(strict_json.dumps({"object": "list", "data": data}))

    async def below_rollouts(self, request: HotRequest) -> HotReply | StreamReply:
        """Everything below /rollouts/: calls that are recorded, the record, and its end."""
        rollout_id, _, rest = request.path.removeprefix(ROLLOUTS).partition("/")
        self._authorise(request, rollout_id)
        dialect = DIALECTS.get("/" + rest)
        if request.method == "POST" and dialect is not None:
            return await self._captured(dialect, request, rollout_id)
        if request.method == "GET" and rest == "v1/models":
            return await self.models(request)
        if request.method == "GET" and not rest:
            return HotReply.json(self._captures.get(rollout_id).json())
        if request.method == "POST" and rest == "close":
            return HotReply.json({"rollout_id": rollout_id, "closed": self._captures.close(rollout_id).closed})
        raise no_such_path(request)

    async def below_ng_rollout(self, request: HotRequest) -> HotReply:
        """/ng-rollout/<id>/v1/responses: as NeMo Gym's agents ask, with the whole prompt's ids on the last item."""
        _, _, rest = request.path.removeprefix(NEMO_GYM).partition("/")
        if request.method != "POST" or "/" + rest != RESPONSES.path:
            raise no_such_path(request)
        call = self._read(request, request.json())
        response = await self._answer(request, call)
        found, tokens, thread = response_object(call, response), response.tokens, call.request.conversation.thread
        if tokens is not None and thread is not None and found["output"]:
            whole = thread.ids[: thread.length - len(tokens.generation_token_ids)]
            lists = (whole, tokens.generation_token_ids, tokens.generation_log_probs)
            found["output"][-1] |= dict(zip(TOKEN_FIELDS, lists, strict=True))
        return HotReply.json(found)

    def _read(self, request: HotRequest, body: Any, session_id: str | None = None) -> Call:
        headers = request.headers
        return self._calls.read(
            body,
            len(request.body),
            inherits=headers.get(b"x-inherit-params") == b"1",
            session_id=session_id or request.header(b"x-session-id"),
            budget_s=request.header(b"x-budget-s"),
        )

    async def _answer(self, request: HotRequest, call: Call) -> Any:
        """The answer; given up, and its place upstream freed, when the caller leaves meanwhile."""
        task = asyncio.current_task()
        assert task is not None
        watching: list[asyncio.Task[None]] = []
        timer = asyncio.get_running_loop().call_later(WATCH_AFTER_S, _watch, request, task, watching)
        try:
            return await self._calls.answer(call)
        except asyncio.CancelledError:
            if watching and watching[0].done() and task.uncancel() == 0:
                raise Overloaded("the caller has gone") from None
            raise
        finally:
            timer.cancel()
            for each in watching:
                each.cancel()

    async def _in_dialect(self, dialect: Dialect, request: HotRequest) -> HotReply | StreamReply:
        try:
            body = json_object(request.json())
            call = self._read(request, dialect.request(body))
            if body.get("stream"):
                return await self._streamed(dialect, call, body)
            response = await self._answer(request, call)
            return HotReply.json(dialect.response(response_object(call, response)))
        except TriviumError as error:
            return HotReply.json(dialect.error(error), error.status)

    async def _streamed(self, dialect: Dialect, call: Call, body: JSON) -> StreamReply:
        """The answer as it comes; what fails before anything was said is an ordinary error with its status."""
        events = self._calls.stream(call)
        first = await anext(events)
        return StreamReply(_told(dialect, body, first, events))

    async def _captured(self, dialect: Dialect, request: HotRequest, rollout_id: str) -> HotReply | StreamReply:
        try:
            body = json_object(request.json())
            record = self._captures.open(rollout_id)
            digest = request_digest(request.path, request.body)
            if digest not in record.answers:
                asked = dialect.request(body)
                whole = {**asked, "input": user_items(asked["input"])} if asked.get("input") is not None else asked
                put = record.continued(whole) if "input" in whole else whole
                call = self._read(request, put, rollout_id)
                answer = record.answers[digest] = asyncio.get_running_loop().create_future()
                call.stream = bool(body.get("stream"))
                events = self._recorded(record, digest, answer, call, whole, put, dialect)
                if call.stream:
                    return StreamReply(_told(dialect, body, await anext(events), events))
                self._run(events)
            response = await asyncio.shield(record.answers[digest])
            if body.get("stream"):
                return StreamReply(_told(dialect, body, None, _again(response)))
            return HotReply.json(dialect.response(response))
        except TriviumError as error:
            return HotReply.json(dialect.error(error), error.status)

    async def _recorded(
        self,
        record: Record,
        digest: bytes,
        answer: "asyncio.Future[JSON]",
        call: Call,
        whole: JSON,
        put: JSON,
        dialect: Dialect,
    ) -> AsyncIterator[JSON]:
        """The events of a call, which is written down when it is answered, whoever still listens."""
        started_at, began = time.time(), time.monotonic()
        try:
            async for event in self._calls.stream(call) if call.stream else self._at_once(call):
                if event["type"] in ("response.completed", "response.incomplete"):
                    response = event["response"]
                    record.note_answer(whole, response)
                    seconds = time.monotonic() - began
                    size = record.add(put, response, started_at=started_at, seconds=seconds, dialect=dialect.name)
                    self._captures.grew(record, size)
                    answer.set_result(response)
                yield event
        except TriviumError as error:
            record.failures.append(
                {"started_at": started_at, "s": time.monotonic() - began, "error": error.body()["error"]}
            )
            if not answer.done():
                answer.set_exception(error)
                answer.exception()  # it is told by the raise, too
            raise
        finally:
            if not answer.done():
                answer.cancel()
            if answer.cancelled() or answer.exception() is not None:
                record.answers.pop(digest, None)

    async def _at_once(self, call: Call) -> AsyncIterator[JSON]:
        response = await self._calls.answer(call)
        yield {"type": f"response.{response.status}", "response": response_object(call, response)}

    def _run(self, events: AsyncIterator[JSON]) -> None:
        """Let a call go to its end though its caller leaves: a retry will ask for its answer."""
        task = asyncio.create_task(_drain(events))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _authorise(self, request: HotRequest, rollout_id: str) -> None:
        """What lies below a rollout has a key of its own, so that a program never needs the stack's token."""
        try:
            self._app.authorise(request)
        except Unauthorized:
            key = request.header(b"x-api-key") or (request.header(b"authorization") or "").removeprefix("Bearer ")
            if not hmac.compare_digest(key.encode(), rollout_key(self._app.token or "", rollout_id).encode()):
                raise


def _watch(request: HotRequest, task: "asyncio.Task[Any]", watching: "list[asyncio.Task[None]]") -> None:
    async def leave() -> None:
        await request.disconnected()
        task.cancel()

    watching.append(asyncio.create_task(leave()))


async def _told(dialect: Dialect, body: JSON, first: JSON | None, events: AsyncIterator[JSON]) -> AsyncIterator[bytes]:
    """The bytes of a stream in the client's dialect; an error in the middle is told in it."""
    teller = face(dialect.name, body)
    try:
        if first is not None:
            yield teller.feed(first)
        async for event in events:
            if told := teller.feed(event):
                yield told
    except TriviumError as error:
        yield teller.fail(error)
        return
    finally:
        with contextlib.suppress(RuntimeError):
            await events.aclose()  # type: ignore[attr-defined]  # an async generator
    yield teller.end()


async def _again(response: JSON) -> AsyncIterator[JSON]:
    for event in response_events(response):
        yield event


async def _drain(events: AsyncIterator[JSON]) -> None:
    with contextlib.suppress(TriviumError):  # told to whoever waits for the answer
        async for _ in events:
            pass
