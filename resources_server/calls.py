"""Tool calls: what is checked before one runs, how it runs, and how what comes of it is told."""

from collections.abc import Sequence
from typing import Any

from resources_server import sessions, verdicts
from resources_server.environment import Environment
from resources_server.game import Game
from resources_server.memory_sessions import MemorySessions
from resources_server.mistakes import Mistake
from resources_server.outputs import output, step_output
from resources_server.runner import Runner
from resources_server.sessions import Ran, Reply, Session, SessionStore
from resources_server.settings import ResourcesServerSettings
from resources_server.threads import TookTooLong
from resources_server.tools import Tool, ToolError
from wire import strict_json
from wire.deadline import Deadline
from wire.errors import Conflict, Failed, Gone
from wire.metrics import Metrics
from wire.rollout import AcceptedCall


class Calls:
    """The tool calls of one environment's sessions.

    Args:
        environment: Whose tools.
        store: Where its sessions are.
        settings: Time-out and size of an output.
        runner: Runs what may block.
        metrics: Counts calls by tool and by what came of them.
    """

    def __init__(
        self,
        environment: type[Environment[Any]],
        store: SessionStore,
        settings: ResourcesServerSettings,
        runner: Runner,
        metrics: Metrics,
    ) -> None:
        self._step = environment.step_tool if issubclass(environment, Game) else None
        self._tools = dict(environment.served()) | ({"step": self._step} if self._step else {})
        self._in_place = {name for name, each in self._tools.items() if not environment.blocking and not each.is_async}
        self._store = store
        self._timeout_s = settings.tool_timeout_s
        self._max_output_bytes = settings.max_output_bytes
        self._runner = runner
        self._metrics = metrics
        self._counts: dict[tuple[str, str], float] = {}

    async def call(
        self, tool: Tool, session_id: str | None, arguments: bytes, call_id: str | None, budget: bytes | None = None
    ) -> Reply:
        """The answer to a tool call: its output, or a sentence for the model about what is wrong with the call.

        Args:
            tool: Which.
            session_id: The caller's.
            arguments: The model's own JSON text.
            call_id: What the caller will ask again by, if it has to.
            budget: Seconds left of the rollout's deadline, as the header says.

        Raises:
            Unauthorized, Gone: There is no such session (any more), or it has been verified.
            Conflict: The call id stands for another call.
        """
        if tool.name in self._in_place and isinstance(self._store, MemorySessions):
            session = self._store.idle(session_id)
            if session is not None:  # nobody else can come between: no lock, no wait
                held = session.held
                reply = self._known(tool, session, arguments, call_id)
                if reply is None:
                    reply = self._made(
                        tool, session, arguments, call_id, self._answer_in_place(tool, session, arguments)
                    )
                    self._store.touched(session, held)
                return reply
        deadline = Deadline.from_header(budget, self._timeout_s)
        async with self._store.use(session_id, reading=tool.read_only, call_id=call_id) as session:
            reply = self._known(tool, session, arguments, call_id)
            if reply is None:
                if deadline.expired:
                    raise Failed(
                        "tool_timeout", f"{tool.doing} waited for its turn until its time was up; it did not run"
                    )
                answer = await self._answer(tool, session, arguments, deadline)
                reply = self._made(tool, session, arguments, call_id, answer)
            return reply

    def accepted(self, ran: Sequence[Ran]) -> list[AcceptedCall]:
        """Calls as the verdict and the record see them: arguments checked, defaults filled in."""
        return [
            AcceptedCall(
                name=each.tool,
                arguments=self._tools[each.tool].accepted(each.arguments),
                status=each.status,  # `refused` is not among them
                order=order,
            )
            for order, each in enumerate(ran)
        ]

    def _known(self, tool: Tool, session: Session, arguments: bytes, call_id: str | None) -> Reply | None:
        """The answer to a call that need not run: it ran before, or the session's time is over."""
        if call_id is not None and (record := session.replies.get(call_id)) is not None:
            return _again(record, tool.name, arguments)
        if session.verdict is not None:
            raise Gone("the session has been verified and takes no more tool calls")
        if session.broken is not None:
            raise Failed("session_lost", session.broken)
        return None

    def _made(
        self, tool: Tool, session: Session, arguments: bytes, call_id: str | None, answer: tuple[str, Reply]
    ) -> Reply:
        status, reply = answer
        session.record(Ran(tool.name, arguments, status), call_id, reply)
        key = (tool.name, status)
        try:
            self._counts[key] += 1
        except KeyError:
            self._counts[key] = 1
            self._metrics.gauge("tool_calls_total", lambda: self._counts[key], tool=tool.name, status=status)
        return reply

    def _answer_in_place(self, tool: Tool, session: Session, arguments: bytes) -> tuple[str, Reply]:
        """Check, run, and put into words; never raises for what the author's code does."""
        values = self._checked(tool, session, arguments)
        if isinstance(values, Reply):
            return "refused", values
        try:
            result = self._runner.in_place(tool.doing, tool.bind(session.world), values)
            return "ok", self._output(tool, result)
        except Exception as error:  # noqa: BLE001  an author's code may raise anything
            return _answer_to(error, tool)

    async def _answer(self, tool: Tool, session: Session, arguments: bytes, deadline: Deadline) -> tuple[str, Reply]:
        """The same for tools that may take a while."""
        values = self._checked(tool, session, arguments)
        if isinstance(values, Reply):
            return "refused", values
        seconds = deadline.left()
        try:
            result = await self._runner.run(tool.doing, seconds, tool.bind(session.world), **values)
            return "ok", self._output(tool, result)
        except TookTooLong:
            session.broken = f"{tool.doing} took longer than {seconds:.3g} s and may still be changing the world"
            return "failed", _failed(Failed("tool_timeout", f"{tool.doing} took longer than {seconds:.3g} s"))
        except Exception as error:  # noqa: BLE001  an author's code may raise anything
            return _answer_to(error, tool)

    def _output(self, tool: Tool, result: Any) -> Reply:
        """What the method returned, as it is told."""
        return (step_output if tool is self._step else output)(result, self._max_output_bytes)

    def _checked(self, tool: Tool, session: Session, arguments: bytes) -> dict[str, Any] | Reply:
        """Arguments for the method, or what the model is told instead."""
        if tool is not self._step and tool.name not in session.offered:
            names = ", ".join(sorted(session.offered)) or "none"
            return _told([f"there is no tool {tool.name!r} in this task; its tools: {names}"])
        try:
            return tool.check(arguments)
        except Mistake as mistake:
            return _told(mistake.sentences)


def _answer_to(error: Exception, tool: Tool) -> tuple[str, Reply]:
    """What comes of an exception: a sentence for the model if it is a `ToolError`, else the end of the rollout."""
    if isinstance(error, ToolError):
        return "tool_error", _told([str(error)])
    return "failed", _failed(verdicts.raised(error, tool.doing, "environment_error"))


def _told(sentences: list[str]) -> Reply:
    """The model's mistake, told to the model."""
    return Reply(strict_json.dumps({"error": sentences}), 422)


def _failed(error: Failed) -> Reply:
    return Reply(strict_json.dumps(error.body()), error.status)


def _again(record: sessions.Record, tool: str, arguments: bytes) -> Reply:
    if record.ran.tool != tool or record.ran.arguments != arguments or record.reply is None:
        raise Conflict("this X-Call-Id was used for another call of the session")
    return record.reply
