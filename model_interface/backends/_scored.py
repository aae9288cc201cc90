"""A chat completion with the ids and log-probabilities of its tokens, read in one pass that makes no object for each token.

Eighty tokens come as eighty objects of four members, of which one number each is wanted: as dicts they cost more than all else that is
done with such an answer.
"""

from typing import Any

import msgspec

from wire import strict_json


class _Scored(msgspec.Struct, gc=False):
    logprob: float


class _Scores(msgspec.Struct, gc=False):
    content: list[_Scored]


class _Choice(msgspec.Struct, gc=False):
    message: dict[str, Any]
    logprobs: _Scores
    token_ids: list[int]
    finish_reason: Any = None


class _Completion(msgspec.Struct, gc=False):
    choices: list[_Choice]
    prompt_token_ids: list[int]
    usage: Any = None
    model: Any = None
    error: Any = None
    object: Any = None
    type: Any = None


_DECODER = msgspec.json.Decoder(_Completion)


def loads(raw: bytes) -> Any:
    """The JSON value of a chat completion: its first choice, and of the log-probabilities the numbers alone, as `token_logprobs`.

    What is of any other form, an error among them, is read as `strict_json.loads_numbers` does. Of members that nobody reads only the
    form is looked at: bytes in them that are no UTF-8 pass.

    Raises:
        JSONError: it is no JSON.
    """
    try:
        read = _DECODER.decode(raw)
        choice = read.choices[0]
    except (msgspec.MsgspecError, IndexError, RecursionError):
        return strict_json.loads_numbers(raw)
    if read.error or "error" in (read.object, read.type):
        return strict_json.loads_numbers(raw)  # what describes it may be in any member
    first = {
        "message": choice.message,
        "finish_reason": choice.finish_reason,
        "logprobs": {"token_logprobs": [each.logprob for each in choice.logprobs.content]},
        "token_ids": choice.token_ids,
    }
    return {
        "choices": [first],
        "prompt_token_ids": read.prompt_token_ids,
        "usage": read.usage,
        "model": read.model,
    }
