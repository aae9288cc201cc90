"""A counter that the agent must bring to an expected value: the smallest environment, to copy from."""

from typing import ClassVar

from resources_server import Call, Environment, Response, Task, tool


class CounterTask(Task):
    initial_count: int
    expected_count: int  # the ground truth


class Counter(Environment[CounterTask]):
    blocking: ClassVar[bool] = False  # nothing here takes more than a microsecond

    count: int = 0

    def seed(self) -> None:
        self.count = self.task.initial_count

    @tool
    def increment_counter(self, count: int) -> dict[str, bool]:
        """Add to the counter.

        Args:
            count: How much to add; may be negative.
        """
        self.count += count
        return {"success": True}

    @tool(read_only=True)
    def get_counter_value(self) -> dict[str, int]:
        """Read the counter."""
        return {"count": self.count}

    def verify(self, response: Response) -> float:
        return float(self.count == self.task.expected_count)

    def solution(self) -> list[Call]:
        missing = self.task.expected_count - self.task.initial_count
        return [Call("increment_counter", {"count": missing})] if missing else []
