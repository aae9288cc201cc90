"""The agent that docs/how-to/agents.md prints runs as it is printed."""

import re
from pathlib import Path
from typing import Any

from agent_server.agent import Agent
from tests.agent_server.stage import call, stage, text

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "agents.md"


async def test_the_agent_of_the_guide_plays() -> None:
    """It asks for a plan, then plays; the user's turns that it adds are in the record."""
    (printed,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(printed, str(PAGE), "exec"), names)
    planner: type[Agent] = names["Planner"]
    async with stage([text("I count.")], [call("increment")], [text("one")], agent=planner) as on:
        line = await on.run()
        assert [item["content"] for item in on.model.sent[1].json["input"]] == ["Now do it."]
    assert (line["outcome"], line["reward"]) == ("completed", 1.0), line["failure"]
    roles = [item.get("role", item["type"]) for item in line["response"]["output"]]
    assert roles == ["user", "assistant", "user", "function_call", "function_call_output", "assistant"]
