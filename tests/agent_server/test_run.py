"""`POST /run`: one rollout from seed to close, and what its line says."""

from tests.agent_server.stage import ROW, Counter, Model, call, outputs, stage, text


async def test_a_rollout_is_seeded_played_verified_and_closed() -> None:
    """The world gets exactly seed, the tool call, verify and close, in this order and under one session id."""
    async with stage([call("increment", '{"by": 3}')], [text("three")]) as on:
        line = await on.run(headers={"X-Session-Id": "s" * 32})
        assert [each.path for each in on.world.sent] == ["/seed_session", "/increment", "/verify", "/close_session"]
        assert {each.headers["x-session-id"] for each in on.world.sent} == {"s" * 32}
    assert (line["reward"], line["outcome"], line["failure"], line["mask_sample"]) == (3.0, "completed", None, False)
    assert line["task_id"] == "t1"
    assert outputs(line) == ["3"]


async def test_the_line_tells_steps_usage_and_provenance() -> None:
    """Usage is summed over the model calls; each step has its own calls."""
    async with stage([call("increment")], [text("one")]) as on:
        line = await on.run()
    assert line["response"]["usage"] == {"input_tokens": 40, "output_tokens": 10, "total_tokens": 50}
    first, second = line["steps"]
    assert [each["name"] for each in first["calls"]] == ["increment"]
    assert (first["calls"][0]["status"], second["calls"]) == ("ok", [])
    assert first["model_s"] > 0 and first["tool_s"] >= first["calls"][0]["s"] > 0
    assert first["usage"] == {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25}
    who = {"model": "m", "backend": "b", "policy_version": "7"}
    assert line["provenance"].items() >= who.items() and line["provenance"].keys() >= {"trivium", "seed_s", "verify_s"}


async def test_only_what_is_new_is_sent_after_the_first_step() -> None:
    """The second request has the id of the first answer and the call's output, nothing else."""
    async with stage([call("increment")], [text("one")]) as on:
        await on.run()
        first, second = on.model.sent
    assert first.json["input"] == "Count."
    assert [tool["name"] for tool in first.json["tools"]] == ["get_weather", "increment", "echo"]
    output = {"type": "function_call_output", "call_id": "call_1", "output": "1"}
    assert second.json == {"previous_response_id": "resp_1", "input": [output]}
    assert second.headers["x-inherit-params"] == "1"
    assert "x-inherit-params" not in first.headers


async def test_a_forgotten_conversation_is_sent_again_whole_with_its_tokens() -> None:
    """On `previous_response_not_found` the agent sends every item, every parameter and the token ids of earlier steps."""
    gone = (404, {"error": {"message": "gone", "code": "previous_response_not_found"}})
    tokens = {"prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-0.5], "fidelity": "exact"}
    model = Model(turns=[[call("increment")], gone, [text("one")]], tokens=[tokens])
    row = {"responses_create_params": {"input": "Count.", "temperature": 0.5}}
    async with stage(model=model) as on:
        line = await on.run(row)
        again = on.model.sent[2].json
    assert [item.get("type", item.get("role")) for item in again["input"]] == [
        "user",
        "function_call",
        "function_call_output",
    ]
    assert (again["temperature"], again["trivium"]) == (0.5, {"steps": [tokens]})
    assert line["outcome"] == "completed"
    assert [step["tokens"] for step in line["steps"]] == [tokens, None]


async def test_the_world_is_closed_after_a_failure() -> None:
    """A model that refuses ends the rollout without a verdict: no verify, but a close."""
    async with stage((400, {"error": {"message": "no such model", "code": "model_refused"}})) as on:
        line = await on.run()
        assert [each.path for each in on.world.sent] == ["/seed_session", "/close_session"]
    assert line["failure"] == {
        "kind": "model_refused",
        "stage": "model",
        "message": "no such model",
        "retryable": False,
    }
    assert (line["reward"], line["mask_sample"], line["failure_kind"]) == (None, True, "model_refused")
    assert line["responses_create_params"] == ROW["responses_create_params"]


async def test_a_failed_rollout_keeps_what_was_played() -> None:
    """A verifier that fails leaves the response in the line, so that it can be judged again without the model."""
    world = Counter(on={"/verify": (500, {"error": {"message": "KeyError: 'answer'", "code": "verifier_error"}})})
    async with stage([call("increment")], [text("one")], world=world) as on:
        line = await on.run()
    assert line["failure"]["kind"] == "verifier_error"
    assert "KeyError: 'answer'" in line["failure"]["message"]
    assert [item["type"] for item in line["response"]["output"]] == ["function_call", "function_call_output", "message"]
    assert len(line["steps"]) == 2


async def test_a_row_that_is_none_is_refused() -> None:
    """Not JSON is 400, a missing field 422 and named; nothing is seeded."""
    async with stage() as on:
        assert (await on.post("/run", b"{"))[0] == 400
        status, body = await on.post("/run", {"task_id": "t"})
        assert (status, on.world.sent) == (422, [])
    assert "responses_create_params" in body["error"]["message"]
