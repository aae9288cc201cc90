"""A scripted answer as a stream of server-sent events, in the form of each endpoint, with whatever oddity was ordered."""

from typing import Any

from wire import strict_json
from wire.testing.answers import Streaming

JSON = dict[str, Any]


def chat_events(answer: JSON, request: JSON, how: Streaming) -> list[JSON]:
    """A chat completion as its chunks: role, thoughts, text, calls, finish, usage."""
    if not answer.get("choices"):
        return [answer]
    choice = answer["choices"][0]
    message = choice["message"]
    base = {"id": answer.get("id"), "object": "chat.completion.chunk", "created": 1, "model": answer.get("model")}
    deltas: list[JSON] = [{"role": "assistant", "content": ""}]
    for name in ("reasoning_content", "reasoning", "content", "refusal"):
        deltas += [{name: piece} for piece in pieces(message.get(name), how.piece)]
    for index, call in enumerate(message.get("tool_calls") or ()):
        deltas += _call_deltas(index, call, how.piece)
    chunks = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason")}]})
    _spread_tokens(chunks, answer, choice)
    if (request.get("stream_options") or {}).get("include_usage") and answer.get("usage"):
        chunks.append({**base, "choices": [], "usage": answer["usage"]})
    return chunks


def completion_events(answer: JSON, request: JSON, how: Streaming) -> list[JSON]:
    """A text completion as its chunks."""
    choice = answer["choices"][0]
    base = {key: answer.get(key) for key in ("id", "object", "created", "model")}
    texts = pieces(choice["text"], how.piece)
    chunks: list[JSON] = [{**base, "choices": [{"index": 0, "text": each, "finish_reason": None}]} for each in texts]
    last = {key: value for key, value in choice.items() if key != "text"}
    chunks.append({**base, "choices": [{**last, "text": ""}]})
    if (request.get("stream_options") or {}).get("include_usage"):
        chunks.append({**base, "choices": [], "usage": answer.get("usage")})
    return chunks


def response_events(answer: JSON, request: JSON, how: Streaming) -> list[JSON]:
    """A Responses object as the events that carry whole items; no deltas."""
    events: list[JSON] = [{"type": "response.created", "response": {**answer, "status": "in_progress", "output": []}}]
    for index, item in enumerate(answer.get("output") or ()):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": f"response.{answer.get('status', 'completed')}", "response": answer})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def encode_events(events: list[JSON], how: Streaming, *, whole: bool = True) -> list[bytes]:
    """The bytes to write, one entry per write. `whole`: the stream goes on to its proper end."""
    lines: list[str] = ["retry: 1500", "id: 7", ""] if how.comments else []
    for number, event in enumerate(events):
        if number == how.error_after:
            lines += [
                "event: error",
                'data: {"error": {"message": "scripted stream error", "type": "server_error"}}',
                "",
            ]
            whole = False
            break
        if how.comments:
            lines += [": keep-alive", "", ":", ""]
        if "type" in event:
            lines.append(f"event: {event['type']}")
        lines += [f"data: {str(strict_json.dumps(event), 'utf-8')}", ""]
    if whole and how.done and not (events and "type" in events[-1]):
        lines += ["data: [DONE]", ""]
    data = "".join(line + how.newline for line in lines).encode()
    if how.chunk_bytes:
        return [data[start : start + how.chunk_bytes] for start in range(0, len(data), how.chunk_bytes)]
    blank = (how.newline * 2).encode()
    return [part + blank for part in data.split(blank) if part]


def pieces(text: Any, size: int) -> list[str]:
    """A text in pieces; nothing for None, the text of a list of parts."""
    if isinstance(text, list):
        text = "".join(str(part.get("text", "")) for part in text)
    return [text[start : start + size] for start in range(0, len(text), size)] if isinstance(text, str) else []


def _call_deltas(index: int, call: JSON, size: int) -> list[JSON]:
    function = call["function"]
    head = {
        "index": index,
        "id": call.get("id"),
        "type": "function",
        "function": {"name": function["name"], "arguments": ""},
    }
    deltas: list[JSON] = [{"tool_calls": [head]}]
    arguments = function["arguments"]
    parts = pieces(arguments, size) if isinstance(arguments, str) else [arguments]
    deltas += [{"tool_calls": [{"index": index, "function": {"arguments": part}}]} for part in parts]
    return deltas


def _spread_tokens(chunks: list[JSON], answer: JSON, choice: JSON) -> None:
    """Ids and log-probs over the chunks as vLLM sends them: the prompt's on the first, the new ones with each."""
    if "prompt_token_ids" in answer:
        chunks[0]["prompt_token_ids"] = answer["prompt_token_ids"]
    ids = choice.get("token_ids")
    scores = (choice.get("logprobs") or {}).get("content")
    places = [chunk["choices"][0] for chunk in chunks[1:]]
    share = -(-max(len(ids or ()), len(scores or ())) // len(places))
    for number, place in enumerate(places):
        start, stop = number * share, (number + 1) * share
        if ids is not None and ids[start:stop]:
            place["token_ids"] = ids[start:stop]
        if scores is not None and scores[start:stop]:
            place["logprobs"] = {"content": scores[start:stop]}
