"""Files and a shell in a sandbox; what is judged is the files that are there in the end."""

import base64
import weakref
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field, PrivateAttr

from resources_server import Call, Environment, Response, Task, ToolError, Verdict, tool
from resources_server.grading.aside import Aside
from resources_server.grading.code import same_output
from resources_server.sandbox import Limits, Result, Sandbox, Session, open_sandbox
from wire import strict_json

SHELL = 'exec "$(command -v bash || command -v sh)" -c "$1"'  # bash where there is one
MOST_CHARS = 20_000  # of a command; the kernel's own limit is not far above
IGNORED = (
    "__pycache__/",
    ".pytest_cache/",
    ".bash_history",
    ".cache/",
    ".python_history",
)  # traces that are nobody's wish


class TerminalTask(Task):
    files: dict[str, str]  # path below the working folder -> text, at the start
    wanted: dict[str, str]  # all files in the end: the ground truth, never shown


class TerminalOptions(BaseModel, extra="forbid"):
    """Where commands run, and what each may use."""

    sandbox: Literal["auto", "namespaces", "container"] = "auto"
    cpu_s: float = Field(5.0, gt=0, le=600)
    wall_s: float = Field(10.0, gt=0, le=600)
    """Keep it below `resources_server.tool_timeout_s`."""
    memory_mib: int = Field(256, ge=32, le=8192)
    disk_mib: int = Field(1, ge=1, le=64)
    """Of the working folder; all of it is state."""
    output_chars: int = Field(10_000, ge=100, le=200_000)
    """Of one command, as the model reads it; the middle of longer output is left out."""
    sessions: int = Field(1024, ge=1)
    """Sandboxes open at once; each takes about 2 MB. Further rollouts wait for one."""

    def limits(self) -> Limits:
        """Of one command."""
        disk = self.disk_mib * 2**20
        memory = self.memory_mib * 2**20
        return Limits(
            cpu_s=self.cpu_s,
            wall_s=self.wall_s,
            memory_bytes=memory,
            disk_bytes=disk,
            file_bytes=disk,
            output_bytes=2**20,
        )


class Shell:
    """A sandbox in use. It is let go of when its world is: closed, or dropped by a store that keeps worlds as text."""

    def __init__(self, shared: Aside[Sandbox], session: Session) -> None:
        self.session = session
        self._shared = shared
        self._dropped = weakref.finalize(self, shared.later, lambda _: session.close())
        self._dropped.atexit = False  # the sandbox ends with this process anyway

    async def close(self) -> None:
        """Free it."""
        self._dropped.detach()
        await self._shared.run(lambda _: self.session.close())


class Terminal(Environment[TerminalTask]):
    """State is the files below the working folder as they are after each command; with them alone a new sandbox goes on where
    another one was lost to a restart (what lies elsewhere, empty folders and permissions are then gone)."""

    Options = TerminalOptions
    shared: ClassVar[Aside[Sandbox]]

    files: dict[str, str] = {}
    binaries: dict[str, str] = {}  # those that are no text, in base64
    commands: int = 0

    _shell: Shell | None = PrivateAttr(None)

    @classmethod
    def load(cls, options: TerminalOptions) -> Aside[Sandbox]:
        """The sandbox; without one the server does not start."""
        return Aside(
            lambda: open_sandbox(options.sandbox, limits=options.limits(), sessions=options.sessions),
            lambda box: box.close(),
        )

    def seed(self) -> None:
        self.files = dict(self.task.files)

    @tool
    async def shell(self, command: Annotated[str, Field(min_length=1)]) -> str:
        """Run a command in a shell, in the working folder. Files stay from one command to the next; running programs,
        variables and the current folder do not. There is no network and nobody to type an answer.

        Args:
            command: As for `bash -c`.
        """
        if len(command) > MOST_CHARS:
            raise ToolError(f"the command has more than {MOST_CHARS} characters")
        result = await self._do(["sh", "-c", SHELL, "sh", command])
        return result.text(self.options.output_chars) or "[no output]"

    @tool
    async def write_file(self, path: Annotated[str, Field(min_length=1)], content: str) -> str:
        """Write a file below the working folder; what it held before is replaced, folders are made as needed.

        Args:
            path: Such as notes/a.txt.
            content: All of its text.
        """
        name = path.removeprefix("/work/").removeprefix("./")
        await self._do(["true"], {name: content})
        return f"written: {name}"

    async def close(self) -> None:
        if self._shell is not None:
            shell, self._shell = self._shell, None
            await shell.close()

    def verify(self, response: Response) -> Verdict:
        found = {name: text for name, text in self.files.items() if not _ignored(name)}
        found |= dict.fromkeys((name for name in self.binaries if not _ignored(name)), "\0")
        wanted = self.task.wanted
        faults = [
            *(f"{name} is missing" for name in wanted if name not in found),
            *(f"{name} should not be there" for name in found if name not in wanted),
            *(f"{name} differs" for name in wanted if name in found and not same(name, found[name], wanted[name])),
        ]
        right = sum(name in found and same(name, found[name], text) for name, text in wanted.items())
        metrics = {"commands": float(self.commands), "files_right": right / len(wanted) if wanted else 1.0}
        return Verdict(reward=float(not faults), metrics=metrics, reason="; ".join(faults[:5]) or None)

    def solution(self) -> list[Call]:
        task = self.task
        writes = [
            Call("write_file", {"path": name, "content": text})
            for name, text in task.wanted.items()
            if task.files.get(name) != text
        ]
        gone = [Call("shell", {"command": f"rm '{name}'"}) for name in task.files if name not in task.wanted]
        return [*writes, *gone]

    async def _do(self, command: list[str], files: dict[str, str] | None = None) -> Result:
        """Run it, and take over the files as they are then; what cannot be run is told to the model and changes nothing."""
        try:
            data = {name: text.encode() for name, text in (files or {}).items()}
            "".join([*command, *data]).encode()
            if self._shell is None:
                self._shell = await self.shared.run(self._opened)
            session = self._shell.session
            result = await self.shared.run(lambda _: session.run(command, files=data, read=["*"]))
        except (OSError, ValueError) as error:
            await self.close()  # the next command finds the files as they were before this one
            raise ToolError(f"that cannot be done: {error}") from error
        self._keep(result)
        return result

    async def _opened(self, sandbox: Sandbox) -> Shell:
        shell = Shell(self.shared, await sandbox.session())
        binaries = {name: base64.b64decode(data) for name, data in self.binaries.items()}
        await shell.session.write({**self.files, **binaries})
        return shell

    def _keep(self, result: Result) -> None:
        files, binaries = {}, {}
        for path, data in sorted(result.files.items()):
            name = path.encode(errors="backslashreplace").decode()  # a name may be any bytes
            try:
                files[name] = data.decode()
            except UnicodeDecodeError:
                binaries[name] = base64.b64encode(data).decode()
        self.files, self.binaries, self.commands = files, binaries, self.commands + 1


def same(name: str, one: str, other: str) -> bool:
    """Whether two files mean the same: JSON by its values, other text by its lines, spaces at their ends aside."""
    if name.endswith(".json"):
        try:
            return bool(strict_json.loads(one) == strict_json.loads(other))
        except strict_json.JSONError:
            return False
    return same_output(one, other)


def _ignored(name: str) -> bool:
    return any(name == each or f"/{name}".find(f"/{each}") >= 0 for each in IGNORED)
