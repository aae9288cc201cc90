"""Ctrl-C and SIGTERM in an event loop: the first asks, the second insists, and the exit status says which it was."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}


@dataclass
class Interrupt:
    """What to do when a signal comes; both may be exchanged as the command gets on.

    Attributes:
        first: Called at the first signal.
        again: Called at each further one.
        status: The exit status that the first signal asks for; None while there was none.
    """

    first: Callable[[], object]
    again: Callable[[], object]
    status: int | None = None

    def __call__(self, number: signal.Signals) -> None:
        """Take one signal."""
        if self.status is None:
            self.status = STATUS[number]
            self.first()
        else:
            self.again()


@contextmanager
def handled(interrupt: Interrupt) -> Iterator[None]:
    """Send SIGINT and SIGTERM of this process to `interrupt` while the block runs.

    Once one was taken, those that come after the block are ignored: what is left is to end with the status that the first one asks for.
    """
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in STATUS}
    for number in STATUS:
        loop.add_signal_handler(number, interrupt, number)
    try:
        yield
    finally:
        for number in STATUS:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number] if interrupt.status is None else signal.SIG_IGN)
