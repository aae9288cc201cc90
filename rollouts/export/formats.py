"""From episodes to the records of each trainer. A format is a name, what it needs, and a pure function."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rollouts.export import atif, gym
from rollouts.export.conversation import (
    completion_of,
    ends_with_assistant,
    prompt_of,
    tools_of,
    with_objects,
    without_reasoning,
)
from rollouts.export.reading import Episode, NotExported, Selection
from rollouts.export.samples import samples_of
from rollouts.export.targets import ONLY_REASONING, ends_in_thought, silence_of

Record = dict[str, Any]


@dataclass(frozen=True)
class Format:
    """One way to write samples."""

    name: str
    help: str
    records: Callable[[Episode, Selection], Iterator[Record]] | None = None
    """Records of one episode. None for a format of pairs."""
    pair: Callable[[Episode, Episode], Record] | None = None
    """The record of a better and a worse episode of one group; both have something to imitate (`targets.silence_of`)."""
    grouped: bool = False
    """Members of a group are compared: groups with too few rewards are left out."""


def trl(episode: Episode, selection: Selection) -> Iterator[Record]:
    """Token samples with the names that TRL's `rollout_func` returns; one per segment."""
    samples = samples_of(episode.line, selection)
    if samples.reason:
        raise NotExported(samples.reason)
    for number, segment in enumerate(samples.segments):
        yield {
            "prompt_ids": segment.prompt_ids,
            "completion_ids": segment.completion_ids,
            "env_mask": segment.mask,
            "logprobs": segment.log_probs,
            "reward": float(episode.line["reward"]),
            **({"reward_components": components} if (components := episode.line.get("reward_components")) else {}),
            **episode.standing,
            **episode.identity,
            "segment": number,
            "fidelity": samples.fidelity,
            "sampling": episode.sampling,
        }


def flat(episode: Episode, selection: Selection) -> Iterator[Record]:
    """Token samples as `input_ids`, `loss_mask` and log-probabilities of one length."""
    for record in trl(episode, selection):
        prompt, completion = record.pop("prompt_ids"), record.pop("completion_ids")
        mask, log_probs = record.pop("env_mask"), record.pop("logprobs")
        yield {
            "input_ids": prompt + completion,
            "loss_mask": [0] * len(prompt) + mask,
            "log_probs": [0.0] * len(prompt) + log_probs,
            **record,
        }


def sft(episode: Episode, selection: Selection) -> Iterator[Record]:
    """`{messages, tools}`, arguments as objects; the last message is the assistant's."""
    yield _told({"messages": with_objects(_dialogue(episode))}, episode)


def unsloth(episode: Episode, selection: Selection) -> Iterator[Record]:
    """`{prompt, completion, tools}`: what Unsloth's own preparation renders and masks; its `conversations` take no tool calls."""
    _dialogue(episode)
    prompt, completion = with_objects(prompt_of(episode.line)), with_objects(completion_of(episode.line))
    yield _told({"prompt": prompt, "completion": completion}, episode)


def openai(episode: Episode, selection: Selection) -> Iterator[Record]:
    """OpenAI's fine-tuning lines: arguments as text, no reasoning. Source: OpenAI guide, supervised fine-tuning."""
    yield _told({"messages": without_reasoning(_dialogue(episode))}, episode)


def kto(episode: Episode, selection: Selection) -> Iterator[Record]:
    """TRL's unpaired preference: desirable when the reward is above the group's mean, or positive where it has no spread."""
    completion = _answered(episode)
    mean = episode.standing["group_mean"]
    reward = float(episode.line["reward"])
    label = reward > 0 if episode.standing["zero_variance"] or episode.standing["n_valid"] < 2 else reward > mean
    yield _told(
        {"prompt": with_objects(prompt_of(episode.line)), "completion": with_objects(completion), "label": label},
        episode,
    )


def dpo(better: Episode, worse: Episode) -> Record:
    """TRL's conversational preference."""
    record = {
        "prompt": with_objects(prompt_of(better.line)),
        "chosen": with_objects(completion_of(better.line)),
        "rejected": with_objects(completion_of(worse.line)),
        "chosen_reward": float(better.line["reward"]),
        "rejected_reward": float(worse.line["reward"]),
    }
    return _told(record, better)


def nemo_rl_preference(better: Episode, worse: Episode) -> Record:
    """NeMo RL's `{context, completions: [{rank, completion}]}`, rank 0 the best."""
    completions = [
        {"rank": rank, "completion": completion_of(episode.line)} for rank, episode in enumerate((better, worse))
    ]
    return {"context": prompt_of(better.line), "completions": completions, **better.identity}


def _dialogue(episode: Episode) -> list[dict[str, Any]]:
    messages = prompt_of(episode.line) + _answered(episode)
    if not ends_with_assistant(messages):
        raise NotExported("the last message is not the model's")
    if ends_in_thought(episode.line):
        raise NotExported(ONLY_REASONING)
    return messages


def _answered(episode: Episode) -> list[dict[str, Any]]:
    """What the model said, where it said anything."""
    if fault := silence_of(episode.line):
        raise NotExported(fault)
    return completion_of(episode.line)


def _told(record: Record, episode: Episode) -> Record:
    tools = tools_of(episode.line)
    return {**record, **({"tools": tools} if tools else {})}


FORMATS: dict[str, Format] = {
    each.name: each
    for each in (
        Format("trl", "TRL: token samples under the names of rollout_func, with advantages", trl, grouped=True),
        Format("tokens", "input_ids, loss_mask, log_probs of one length, for any trainer", flat, grouped=True),
        Format("trl-sft", "TRL: {messages, tools} for supervised fine-tuning", sft),
        Format("trl-dpo", "TRL: {prompt, chosen, rejected}", pair=dpo),
        Format("trl-kto", "TRL: {prompt, completion, label}", kto),
        Format("unsloth", "Unsloth: {prompt, completion, tools} for supervised fine-tuning", unsloth),
        Format("nemo-rl", "NeMo RL: rows with token fields on output items", gym.nemo_rl, grouped=True),
        Format("nemo-rl-sft", "NeMo RL: {messages, tools}", sft),
        Format("nemo-rl-preference", "NeMo RL: {context, completions}", pair=nemo_rl_preference),
        Format("verl", "veRL: prompt, reward_model, extra_info, agent_ref", gym.verl),
        Format("openai", "OpenAI fine-tuning lines", openai),
        Format("atif", "the agent trajectory interchange format", atif.records),
    )
}
