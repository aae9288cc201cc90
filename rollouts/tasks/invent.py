"""Tasks that a model words or thinks up, kept only where they hold up."""

from collections.abc import Sequence
from typing import Any

from rollouts.check.world import World
from rollouts.tasks.model import Model
from rollouts.tasks.prompts import entities, lost, prompt_of, truth_of, with_prompt
from rollouts.tasks.proof import flaw
from wire import strict_json
from wire.errors import UsageError
from wire.figures import SOLVED
from wire.rollout import check_row

REWORD = (
    "Reword the request that you are given, as another person would put it. Keep its meaning, and keep these exactly as they are "
    "written: {kept}. Answer with the reworded request only."
)
PROPOSE = (
    "You make tasks for an environment. A task is one JSON object. Its `prompt` is what an agent is asked; its other fields are what "
    "the environment starts from and what it will be judged by, so they must fit the prompt exactly. Answer with one JSON object only."
)
EXAMPLES = 3  # shown for one proposal


async def reworded(model: Model, world: World, row: dict[str, Any], number: int) -> dict[str, Any] | str:
    """The row in other words, or why it cannot be had: something got lost in it, or the truth does not hold any more."""
    kept = entities(row)
    instruction = REWORD.format(kept=", ".join(kept) or "all facts")
    text = await model.text(instruction, prompt_of(row))
    name = f"{row.get('task_id', 'row')}-worded-{number}"
    if not text or text == prompt_of(row):
        return f"{name}: the model gave the same words back"
    if missing := lost(row, text):
        return f"{name}: the rewording has lost or added {', '.join(missing[:5])}"
    made = {**with_prompt(row, text), "task_id": name}
    return await flaw(world, made) or made


async def proposed(
    model: Model, world: World, examples: Sequence[dict[str, Any]], number: int, solves: int
) -> dict[str, Any] | str:
    """A new task, or why what was proposed is none.

    It is carried out in its world and has to change it; then it is solved `solves` times by agents that see the prompt only, and more
    than half of them must come to what it claims.
    """
    name = f"proposed-{number}"
    row = _read(await model.text(PROPOSE, _request(examples, number)), examples[0], name)
    if isinstance(row, str):
        return row
    if problem := await flaw(world, row, change=True):
        return problem
    rewards = [await model.solve(row) for _ in range(solves)]
    agreed = sum(reward is not None and reward >= SOLVED for reward in rewards)
    return row if agreed * 2 > solves else f"{name}: {agreed} of {solves} independent solves agree with it"


def _request(examples: Sequence[dict[str, Any]], number: int) -> str:
    shown = [examples[(number + offset) % len(examples)] for offset in range(min(EXAMPLES, len(examples)))]
    lines = [strict_json.dumps({"prompt": prompt_of(row), **truth_of(row)}).decode() for row in shown]
    return "\n".join(["Examples:", *lines, "", "One more task, unlike these:"])


def _read(text: str, like: dict[str, Any], name: str) -> dict[str, Any] | str:
    """The row that a text proposes, with the fields that rows of this environment have."""
    try:
        found = strict_json.loads(text[text.index("{") : text.rindex("}") + 1])
    except ValueError:
        return f"{name}: the model gave no JSON object"
    if not isinstance(found, dict) or not isinstance(prompt := found.pop("prompt", None), str) or not prompt.strip():
        return f"{name}: the object has no prompt"
    known = truth_of(like)
    if unknown := found.keys() - known.keys():
        return f"{name}: the object has fields that rows have not: {', '.join(sorted(unknown))}"
    made = {**with_prompt(like, prompt.strip()), **found, "task_id": name, "template": "proposed"}
    try:
        return check_row(made) or made
    except UsageError as error:
        return f"{name}: {error}"
