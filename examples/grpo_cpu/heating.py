"""A heating: the agent sets it to what the task asks for. Small enough for a model of 135 million parameters."""

from typing import ClassVar

from resources_server import Call, Environment, Response, Task, Verdict, tool

FAR = 5  # degrees off from which nothing is right about the temperature


class HeatingTask(Task):
    degrees: int  # the ground truth


class Heating(Environment[HeatingTask]):
    blocking: ClassVar[bool] = False

    setting: int | None = None

    @tool
    def heat(self, degrees: int) -> str:
        """Heat.

        Args:
            degrees: Celsius.
        """
        self.setting = degrees
        return f"set to {degrees}"

    @tool(read_only=True)
    def look(self) -> str:
        """Look."""
        return "not set" if self.setting is None else f"set to {self.setting}"

    def verify(self, response: Response) -> Verdict:
        """A quarter for setting it at all, the rest for the degrees as far as they are near."""
        if self.setting is None:
            return Verdict(reward=0.0, reward_components={"called": 0.0, "near": 0.0})
        near = 0.75 * max(0.0, 1 - abs(self.setting - self.task.degrees) / FAR)
        return Verdict(reward=0.25 + near, reward_components={"called": 0.25, "near": near})

    def solution(self) -> list[Call]:
        return [Call("heat", {"degrees": self.task.degrees})]
