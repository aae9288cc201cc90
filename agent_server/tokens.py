"""Token ids on the items themselves, as NeMo Gym and NeMo RL read them, rebuilt from the deltas that the steps hold. Pure."""

from typing import Any

from agent_server.episode import Transcript
from wire.responses import TOKEN_FIELDS, Item

PROMPT, GENERATION, LOG_PROBS = TOKEN_FIELDS


def marked_items(transcript: Transcript) -> list[Item]:
    """The episode's items; the last one that each model call made also has all three token fields, the whole prompt included.

    A step whose prompt cannot be rebuilt, because the ids before it are not known, gets none: never a guess.
    """
    items = list(transcript.items)
    for step, end, whole in zip(transcript.steps, transcript.ends, whole_prompts(transcript.steps), strict=True):
        if end is not None and whole is not None:
            tokens = step["tokens"]
            fields = {PROMPT: whole, GENERATION: tokens[GENERATION], LOG_PROBS: tokens[LOG_PROBS]}
            items[end] = {**items[end], **fields}
    return items


def whole_prompts(steps: list[dict[str, Any]]) -> list[list[int] | None]:
    """Per step, the ids of its whole prompt; None where they are not known.

    A step that is `exact` and not the first holds only what comes after the prompt and generation of the step before it.
    """
    found: list[list[int] | None] = []
    before: list[int] | None = None  # all ids up to here
    for index, step in enumerate(steps):
        tokens = step["tokens"]
        whole = None
        if tokens is not None:
            delta = index > 0 and tokens.get("fidelity") == "exact"
            if not delta:
                whole = tokens[PROMPT]
            elif before is not None:
                whole = before + tokens[PROMPT]
        found.append(whole)
        before = None if whole is None else whole + tokens[GENERATION]
    return found
