"""The smallest reset/step world: it says back what it is told, and longer messages are worth more, up to a limit."""

from resources_server import Call, Game, Step, Task

FULL = 100  # characters from which a message is worth 1


class EchoTask(Task):
    turns: int = 1  # messages in one episode


class Echo(Game[EchoTask]):
    """Each step is worth its length, at most 1; the episode the mean of its steps."""

    blocking = False
    waived = dict.fromkeys(("noise", "spray", "mischief"), "any long message is right here")
    heard: list[str] = []

    def reset(self) -> str:
        return "Say something."

    def step(self, action: str) -> Step:
        self.heard.append(action)
        worth = min(len(action.strip()), FULL) / FULL / self.task.turns
        return Step(f"You said: {action}", reward=worth, done=len(self.heard) >= self.task.turns)

    def solution(self) -> list[Call]:
        return [Call("act", {"action": "echo " * (FULL // 4)})] * self.task.turns
