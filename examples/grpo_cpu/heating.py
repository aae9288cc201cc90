"""The heating of two rooms: the agent sets one to what the task asks for. Small enough for a model of 135 million parameters."""

from typing import ClassVar, Literal

from resources_server import Call, Environment, Response, Task, Verdict, tool

Room = Literal["kitchen", "office"]
FAR = 5  # degrees off from which nothing is right about the temperature


class HeatingTask(Task):
    room: Room
    degrees: int  # both the ground truth


class Heating(Environment[HeatingTask]):
    blocking: ClassVar[bool] = False

    settings: dict[str, int] = {}  # room -> degrees, those that were set

    @tool
    def heat(self, room: Room, degrees: int) -> str:
        """Heat.

        Args:
            room: Which one.
            degrees: Celsius.
        """
        self.settings[room] = degrees
        return f"{room}: {degrees}"

    @tool(read_only=True)
    def look(self) -> dict[str, int]:
        """Look."""
        return self.settings

    def verify(self, response: Response) -> Verdict:
        """Half for the room, half for the degrees as far as they are near; setting another room as well costs the half of the room."""
        room = 0.5 * (list(self.settings) == [self.task.room])
        near = min((abs(each - self.task.degrees) for each in self.settings.values()), default=FAR)
        degrees = 0.5 * max(0.0, 1 - near / FAR)
        return Verdict(reward=room + degrees, reward_components={"room": room, "degrees": degrees})

    def solution(self) -> list[Call]:
        return [Call("heat", {"room": self.task.room, "degrees": self.task.degrees})]
