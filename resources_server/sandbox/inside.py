"""The trusted program inside a sandbox: makes the walls, then runs commands and moves files on request.

Runs as a script of its own (`python -I -S inside.py …`), on the standard library alone, since behind the walls there
is nothing else. Three roles, one after the other in the life of a process:

- `zygote`: waits outside for requests and forks; a fork of a small single-threaded process costs 1 ms, a Python 15.
- builder: the fork; enters new namespaces, builds the file view, forks once more and goes away.
- init: process 1 of the new process namespace; serves frames (see `wire_format`) until its socket closes. Killing it,
  or closing the socket, ends everything inside.

With `bare` the walls are someone else's (a container's) and init serves on stdin and stdout.

Each command, and each file operation, happens in a child without privileges: own user id, no capabilities, chroot
in the file view, resource limits. What init itself watches is the sum over all processes: CPU, memory, output, time.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import resource
import selectors
import signal
import socket
import stat
import struct
import sys
import time
from typing import Any

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    1,
    2,
    4,
    8,
    32,
    4096,
    16384,
    1 << 18,
)
MNT_DETACH = 2
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 22, 24, 36, 38
CAPABILITY_VERSION_3 = 0x20080522

ROOT = "/tmp"  # where the new root is mounted before it becomes the root; private to the mount namespace
BOX = "/box"  # what commands see as /; a chroot below the root, so that they cannot make user namespaces
TICK_S = 0.05  # how often the sums over all processes are looked at
MAX_FILES = 10_000  # in one listing
HEAD = struct.Struct("!II")

libc = ctypes.CDLL(None, use_errno=True)

# System calls that no program here needs: they make memory that no limit counts, look into other processes, or talk to
# parts of the kernel where escapes come from. By machine: (audit architecture, numbers).
REFUSED = {
    "x86_64": (
        0xC000003E,
        (
            *(101, 319, 447, 29, 240, 310, 311),  # ptrace memfd_create memfd_secret shmget mq_open process_vm_*
            *(272, 308, 165, 166, 155, 428, 429, 430, 432, 442),  # unshare setns mount umount2 pivot_root, new mounts
            *(248, 249, 250, 321, 298, 323, 425, 426, 304, 103),  # keys bpf perf userfaultfd io_uring handles syslog
        ),
    ),
    "aarch64": (
        0xC00000B7,
        (
            *(117, 279, 447, 194, 180, 270, 271),
            *(97, 268, 40, 39, 41, 428, 429, 430, 432, 442),
            *(217, 218, 219, 280, 241, 282, 425, 426, 265, 116),
        ),
    ),
}


# frames: two lengths, a JSON header, a payload


def send(fd: int, header: dict[str, Any], payload: bytes = b"") -> None:
    """Writes one frame."""
    head = json.dumps(header).encode()
    data = memoryview(HEAD.pack(len(head), len(payload)) + head + payload)
    while data:
        data = data[os.write(fd, data) :]


def receive(fd: int) -> tuple[dict[str, Any], bytes] | None:
    """Reads one frame; None when the other side is gone."""
    head = _exactly(fd, HEAD.size)
    if head is None:
        return None
    sizes = HEAD.unpack(head)
    header, payload = _exactly(fd, sizes[0]), _exactly(fd, sizes[1])
    return None if header is None or payload is None else (json.loads(header), payload)


def _exactly(fd: int, size: int) -> bytes | None:
    parts = []
    while size:
        part = os.read(fd, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


# zygote and builder


def zygote(fd: int) -> None:
    """Forks a builder for each request on the socket `fd`, until the other side is gone."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits: the kernel reaps
    link = socket.socket(fileno=fd)
    while True:
        message, fds, _, _ = socket.recv_fds(link, 1 << 16, 1)
        if not message:
            return
        if os.fork() == 0:
            link.close()
            _build(json.loads(message), fds[0])
            os._exit(0)
        for each in fds:
            os.close(each)


def _build(spec: dict[str, Any], control: int) -> None:
    """Goes behind new walls and forks init; frames `{pid}` and `{ready}`, or `{error}`, say how that went."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    try:
        uid = _enter(spec)
        pid = os.fork()
        if pid:
            return send(control, {"pid": pid})  # as the outside knows it
        _furnish(spec, uid)
    except OSError as error:
        send(control, {"error": str(error)})
        os._exit(1)
    init(control, control, uid, spec["env"])
    os._exit(0)


def _enter(spec: dict[str, Any]) -> int:
    """New namespaces; gives the user id for commands. With a user namespace only where root's own rights do not do."""
    most = NEWNS | NEWPID | NEWNET | NEWIPC | NEWUTS
    if os.geteuid() == 0 and libc.unshare(most) == 0:
        return int(spec["uid"])
    outer, group = os.geteuid(), os.getegid()
    _check(libc.unshare(most | NEWUSER), "unshare")
    inner = 65534
    for name, text in (("setgroups", "deny"), ("uid_map", f"{inner} {outer} 1"), ("gid_map", f"{inner} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    return inner


def _furnish(spec: dict[str, Any], uid: int) -> None:
    """The file view: read-only runtime, private /proc, /dev, and two writable folders of bounded size."""
    _mount(None, "/", None, MS_REC | MS_PRIVATE)
    for name, value in (("shmmax", "1048576"), ("shmall", "256")):  # of the new IPC namespace
        with contextlib.suppress(OSError), open(f"/proc/sys/kernel/{name}", "w") as file:
            file.write(value)
    _mount("tmpfs", ROOT, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755")
    box = ROOT + BOX
    for name in ("", "/proc", "/dev", "/work", "/tmp", "/etc"):
        os.mkdir(box + name, 0o755)
    for path in spec["show"]:
        _show(path, box)
    for path in spec["hide"]:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.stat(box + path)
            _mount("tmpfs", box + path, "tmpfs", MS_RDONLY | MS_NOSUID, "size=4k,mode=555")
    for name in ("null", "zero", "full", "random", "urandom"):
        os.close(os.open(f"{box}/dev/{name}", os.O_CREAT | os.O_WRONLY))
        _mount(f"/dev/{name}", f"{box}/dev/{name}", None, MS_BIND)
    os.symlink("/proc/self/fd", f"{box}/dev/fd")
    for options in ("hidepid=2,subset=pid", "hidepid=2", None):
        with contextlib.suppress(OSError):  # forbidden in some containers: then there is no /proc
            _mount("proc", f"{box}/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, options)
            break
    for name in ("/work", "/tmp"):
        size = f"size={spec['disk_bytes']},nr_inodes={MAX_FILES},mode=700"
        _mount("tmpfs", box + name, "tmpfs", MS_NOSUID | MS_NODEV, size)
        os.chown(box + name, uid, os.getegid() if uid == 65534 else uid)
    os.mkdir(f"{ROOT}/old")
    _check(libc.pivot_root(ROOT.encode(), f"{ROOT}/old".encode()), "pivot_root")
    os.chdir("/")
    _check(libc.umount2(b"/old", MNT_DETACH), "umount /old")
    os.rmdir("/old")
    _mount(None, "/", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    socket.sethostname("sandbox")


def _show(path: str, box: str) -> None:
    """`path` of the machine at the same place in the view, read-only; a link stays a link, what is missing is left."""
    target = box + path
    try:
        kind = os.lstat(path).st_mode
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if stat.S_ISLNK(kind):
            os.symlink(os.readlink(path), target)
            return
        if os.path.ismount(target):
            return
        if stat.S_ISDIR(kind):
            os.makedirs(target, exist_ok=True)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
    except (FileNotFoundError, FileExistsError):
        return
    except OSError as error:
        if error.errno == errno.EROFS:  # already shown, inside a folder that is
            return
        raise
    try:
        _mount(path, target, None, MS_BIND)
    except OSError:
        _mount(path, target, None, MS_BIND | MS_REC)  # a tree with mounts of its own, seen from a user namespace
    kept = os.statvfs(path).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC)  # flags that may not be taken off
    _mount(None, target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | kept)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [each.encode() if each is not None else None for each in (source, target, kind, options)]
    _check(libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]), f"mount {target}")


def _check(result: int, what: str) -> None:
    if result:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


# init


def init(incoming: int, outgoing: int, uid: int, env: dict[str, str], box: str = BOX) -> None:
    """Serves requests until the other side is gone."""
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    os.umask(0o022)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    wakeup = os.pipe2(os.O_NONBLOCK)  # so that the end of a child ends the waiting for its output at once
    signal.set_wakeup_fd(wakeup[1], warn_on_full_buffer=False)
    send(outgoing, {"ready": True, "proc": os.path.exists(f"{box}/proc/1")})
    while (request := receive(incoming)) is not None:
        ask, payload = request
        walls = Walls(uid, box, env | ask.get("env", {}), ask["limits"])
        answer: dict[str, Any] = {"exit": None, "killed_by": None}
        stdin, at = payload[: ask["stdin"]], ask["stdin"]
        outputs = [b"", b"", b""]
        fault = put(walls, ask["put"], payload[at:]) if ask["put"] else ""
        if fault:
            answer["fault"] = fault
        elif ask["argv"]:
            outputs[:2] = run(walls, ask["argv"], stdin, answer, (incoming, wakeup[0]))
        if not fault and ask["get"] is not None:
            answer["files"], outputs[2], answer["fault"] = get(walls, ask["get"])
        answer["sizes"] = [len(outputs[0]), len(outputs[1])]
        send(outgoing, answer, b"".join(outputs))


class Walls:
    """What a child may be and use."""

    def __init__(self, uid: int, box: str, env: dict[str, str], limits: dict[str, Any]) -> None:
        self.uid, self.box, self.env, self.limits = uid, box, env, limits

    def fork(self, *fds: int) -> int:
        """Forks; in the child the standard streams are `fds`, nothing else is open, and no privilege is left."""
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                for place, fd in enumerate(fds):
                    os.dup2(fd, 100 + place)
                for place in range(len(fds)):
                    os.dup2(100 + place, place)
                os.closerange(len(fds), 4096)
                self._limit()
                self._lower()
            except OSError as error:
                os.write(len(fds) - 1, f"sandbox: {error}".encode())
                os._exit(126)
        return pid

    def _limit(self) -> None:
        limits = self.limits
        cpu = max(1, int(limits["cpu_s"] + 0.999))
        for kind, value in (
            (resource.RLIMIT_CPU, cpu),
            (resource.RLIMIT_AS, limits["memory_bytes"]),
            (resource.RLIMIT_FSIZE, limits["file_bytes"]),
            (resource.RLIMIT_NOFILE, limits["open_files"]),
            (resource.RLIMIT_NPROC, limits["processes"]),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_MEMLOCK, 0),
            (resource.RLIMIT_MSGQUEUE, 0),
        ):
            hard = value + 1 if kind == resource.RLIMIT_CPU else value
            ceiling = resource.getrlimit(kind)[1]
            if ceiling != resource.RLIM_INFINITY:
                value, hard = min(value, ceiling), min(hard, ceiling)
            resource.setrlimit(kind, (value, hard))

    def _lower(self) -> None:
        if self.box != "/":
            os.chroot(self.box)
        os.chdir("/work")
        for capability in range(64):
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
        if os.getuid() != self.uid:
            os.setgroups([])
            os.setresgid(self.uid, self.uid, self.uid)
            os.setresuid(self.uid, self.uid, self.uid)
        header, none = struct.pack("Ii", CAPABILITY_VERSION_3, 0), bytes(24)
        _check(libc.capset(header, none), "capset")
        _check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
        refuse_calls()
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def refuse_calls() -> None:
    """From here on this process and its children get EPERM for the calls in REFUSED. Where the kernel has no such
    filters, or on other machines, the other walls have to do."""
    arch, numbers = REFUSED.get(os.uname().machine, (0, ()))
    if not arch:
        return
    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06  # classic BPF: ld [k], jeq k, jge k, ret k
    allow, refuse = 0x7FFF0000, 0x00050000 | errno.EPERM
    steps = [(load, 0, 0, 4), (equal, 0, len(numbers) + 3, arch), (load, 0, 0, 0)]
    steps.append((at_least, len(numbers) + 1, 0, 0x40000000))  # another numbering of the same calls
    steps += [(equal, len(numbers) - place, 0, number) for place, number in enumerate(numbers)]
    steps += [(answer, 0, 0, allow), (answer, 0, 0, refuse)]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(held))
    libc.prctl(PR_SET_SECCOMP, 2, program, 0, 0)


def run(walls: Walls, argv: list[str], stdin: bytes, answer: dict[str, Any], signs: tuple[int, int]) -> list[bytes]:
    """Runs a command to its end or to a limit, and kills whatever it left behind. Fills in exit, killed_by, times."""
    into, out, err = os.pipe(), os.pipe(), os.pipe()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    pid = walls.fork(into[0], out[1], err[1])
    if pid == 0:
        try:
            os.execvpe(argv[0], argv, walls.env)
        except OSError as error:
            os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        os._exit(127)
    for fd in (into[0], out[1], err[1]):
        os.close(fd)
    watch = Watch(walls, pid, start, signs)
    outputs, status = watch.until_done(into[1], out[0], err[0], stdin)
    kill_all()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    code = os.waitstatus_to_exitcode(status) if status is not None else -signal.SIGKILL
    killed_by = watch.killed_by
    spent = used >= walls.limits["cpu_s"] - 0.1
    if killed_by is None and (code == -signal.SIGXCPU or (code == -signal.SIGKILL and spent)):
        killed_by = "cpu"  # SIGXCPU comes from this limit alone, whatever the accounting of a busy machine says
    answer.update(exit=code, killed_by=killed_by, cpu_s=used, wall_s=time.monotonic() - start)
    return outputs


class Watch:
    """One running command: feeds and drains it within the limits, and says which limit ended it."""

    def __init__(self, walls: Walls, pid: int, start: float, signs: tuple[int, int]) -> None:
        self.limits, self.pid, self.start = walls.limits, pid, start
        self.control, self.wakeup = signs  # readable when the other side is gone, and when a child has ended
        self.proc = f"{walls.box}/proc"
        self.killed_by: str | None = None
        self.status: int | None = None
        self.base = cpu_of_children()

    def until_done(self, into: int, out: int, err: int, stdin: bytes) -> tuple[list[bytes], int | None]:
        selector = selectors.DefaultSelector()
        outputs = {out: bytearray(), err: bytearray()}
        for fd in (into, out, err):
            os.set_blocking(fd, False)
        for fd in outputs:
            selector.register(fd, selectors.EVENT_READ)
        left = memoryview(stdin)
        if left:
            selector.register(into, selectors.EVENT_WRITE)
        else:
            os.close(into)
        for fd in (self.control, self.wakeup):
            selector.register(fd, selectors.EVENT_READ)
        while self.status is None and self.killed_by is None:
            for key, _ in selector.select(TICK_S):
                if key.fd == self.control:
                    os._exit(1)  # nobody asks while a command runs: the other side is gone
                elif key.fd == self.wakeup:
                    os.read(self.wakeup, 4096)
                elif key.fd == into:
                    left = self._feed(selector, into, left)
                else:
                    self._drain(selector, key.fd, outputs)
            self._look()
        if self.killed_by:
            os.kill(self.pid, signal.SIGKILL)
        for fd in (out, err):
            while self._drain(None, fd, outputs):
                pass
            os.close(fd)
        if left:
            os.close(into)
        selector.close()
        if self.status is None:
            self.status = os.waitpid(self.pid, 0)[1]
        return [bytes(each) for each in outputs.values()], self.status

    def _feed(self, selector: selectors.BaseSelector, fd: int, left: memoryview) -> memoryview:
        try:
            left = left[os.write(fd, left[:65536]) :]
        except BrokenPipeError:
            left = left[:0]
        if not left:
            selector.unregister(fd)
            os.close(fd)
        return left

    def _drain(self, selector: selectors.BaseSelector | None, fd: int, outputs: dict[int, bytearray]) -> bool:
        """Reads once, never more than the limit; past it the rest is not read and the command ends."""
        room = self.limits["output_bytes"] - sum(map(len, outputs.values()))
        try:
            data = os.read(fd, min(65536, room + 1))
        except BlockingIOError:
            return False
        if selector is not None and not data:
            selector.unregister(fd)
        outputs[fd] += data[:room]
        if len(data) > room:
            self.killed_by = self.killed_by or "output"
            return False
        return bool(data)

    def _look(self) -> None:
        """Has the command ended, or a sum passed its limit? Children of others are reaped as they come."""
        if time.monotonic() - self.start > self.limits["wall_s"]:
            self.killed_by = "wall"
        while self.status is None:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid == self.pid:
                self.status = status
        if self.status is None and self.killed_by is None:
            cpu, memory = sums(self.proc)
            if memory > self.limits["memory_bytes"]:
                self.killed_by = "memory"
            elif cpu + cpu_of_children() - self.base > self.limits["cpu_s"] + 0.1:
                self.killed_by = "cpu"


TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


def cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def sums(proc: str) -> tuple[float, int]:
    """CPU seconds and resident bytes of every process but this one."""
    cpu, memory, me = 0, 0, os.getpid()
    try:
        names = [name for name in os.listdir(proc) if name.isdigit() and int(name) != me]
    except OSError:
        return 0.0, 0
    for name in names:
        with contextlib.suppress(OSError, ValueError), open(f"{proc}/{name}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
            cpu += sum(map(int, fields[11:15]))  # own and reaped children's, user and system
            memory += int(fields[21]) * PAGE
    return cpu / TICKS, memory


def kill_all() -> None:
    """Ends every process here but this one, and waits for it."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


# files: always in a child that may do no more than a command may


def put(walls: Walls, files: list[list[Any]], payload: bytes) -> str:
    """Writes files below /work; what went wrong in words, else ""."""
    read, write = os.pipe()
    pid = walls.fork(read, write)
    if pid == 0:
        at = 0
        try:
            for name, size, mode in files:
                _write(name, payload[at : at + size], mode)
                at += size
        except OSError as error:
            os.write(1, f"{name}: {error.strerror}".encode())
        os._exit(0)
    os.close(write)
    fault = b"".join(iter(lambda: os.read(read, 4096), b""))
    os.close(read)
    kill_all()
    return fault.decode(errors="replace")


def _write(name: str, data: bytes, mode: int) -> None:
    path = os.path.join("/work", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    while data:
        data = data[os.write(fd, data) :]
    os.close(fd)


def get(walls: Walls, names: list[str]) -> tuple[list[list[Any]], bytes, str]:
    """Regular files below /work, those in `names` or all with `["*"]`: their names and sizes, contents, and a fault."""
    read, write = os.pipe()
    pid = walls.fork(read, write)
    if pid == 0:
        _send_files(names, walls.limits["disk_bytes"])
        os._exit(0)
    os.close(write)
    frame = receive(read)
    os.close(read)
    kill_all()
    if frame is None:
        return [], b"", "the files could not be read"
    return frame[0]["files"], frame[1], frame[0]["fault"]


def _send_files(names: list[str], limit: int) -> None:
    found: list[list[Any]] = []
    parts: list[bytes] = []
    fault = ""
    for name in _all_files() if names == ["*"] else names:
        try:
            data = _read(name, limit)
        except OSError:
            continue
        limit -= len(data)
        if limit < 0 or len(found) >= MAX_FILES:
            fault = "more files than the limit on disk space allows"
            break
        found.append([name, len(data)])
        parts.append(data)
    send(1, {"files": found, "fault": fault}, b"".join(parts))


def _all_files() -> list[str]:
    names = []
    for folder, folders, files in os.walk("/work"):
        folders.sort()
        names += [os.path.relpath(os.path.join(folder, file), "/work") for file in files]
        if len(names) > MAX_FILES:
            break
    return sorted(names)


def _read(name: str, limit: int) -> bytes:
    fd = os.open(os.path.join("/work", name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "no regular file")
        return b"".join(iter(lambda: os.read(fd, min(1 << 20, limit + 1)), b""))
    finally:
        os.close(fd)


if __name__ == "__main__":
    if sys.argv[1] == "zygote":
        zygote(int(sys.argv[2]))
    else:
        init(0, 1, int(sys.argv[2]), json.loads(sys.argv[3]), box="/")
