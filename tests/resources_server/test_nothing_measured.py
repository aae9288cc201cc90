"""Case E05 through the servers: an exception, a missing truth and a verdict without end are failures and never zeros.

Judges, sandboxes and solvers that cannot be had are in the tests of the environments that need them.
"""

import asyncio
from typing import Any

import pytest

from resources_server import Environment, Response, Task
from tests.stack import run, stack
from wire.testing import serving
from wire.testing.upstream import MSG, Upstream


class Loose(Task):
    """A row whose truth may be missing."""

    verifier_metadata: dict[str, Any] = {}


class Careless(Environment[Loose]):
    """Its verdict takes the truth for granted, or takes its time."""

    async def verify(self, response: Response) -> float:
        """As the row says."""
        if self.task.verifier_metadata.get("slow"):
            await asyncio.Event().wait()
        return float(response.text == self.task.verifier_metadata["answer"])


@pytest.mark.parametrize(
    ("truth", "kind", "said"),
    [({}, "verifier_error", "KeyError: 'answer'"), ({"slow": True}, "verifier_timeout", "took longer than 0.3 s")],
)
async def test_a_verdict_that_fails_is_no_zero(truth: dict[str, Any], kind: str, said: str) -> None:
    """The exception's type and text are in the line, and so is what was played, to be judged again without the model."""
    world = {"environment": "tests.resources_server.test_nothing_measured:Careless", "verify_timeout_s": 0.3}
    async with serving(up=Upstream([MSG("x")])) as up, stack(up["up"], resources_server=world) as urls:
        line = await run(urls, {"responses_create_params": {"input": "?"}, "verifier_metadata": truth})
    assert (line["failure"]["kind"], line["failure_kind"], line["failure"]["stage"]) == (kind, kind, "verify")
    assert (line["reward"], line["mask_sample"]) == (None, True)
    assert said in line["failure"]["message"]
    assert line["response"]["output"][0]["content"][0]["text"] == "x"
