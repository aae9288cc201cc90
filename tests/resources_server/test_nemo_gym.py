"""The typed session messages of NeMo Gym 0.7, from the contract's words."""

from resources_server.environments.counter import Counter
from resources_server.nemo_gym import row_of
from tests.resources_server.conftest import Serve

DATA = {"initial_count": 0, "expected_count": 2}
SEED = {
    "resources_session_id": "session-1",
    "episode_id": {"rollout_id": "r-7", "attempt": 0},
    "task_id": {"taskset": "counter", "task_id": "1"},
    "task_data": DATA,
}
CLOSE = {"resources_session_id": "session-1", "episode_id": SEED["episode_id"]}


async def test_a_typed_session(serve: Serve) -> None:
    """The reply holds exactly what it may; the cookie is enough for what follows; seed and close may be repeated."""
    async with serve(Counter) as world:
        seeded = await world.post("/seed_session", SEED, session=None)
        assert seeded.json.keys() == {"resources_session_id", "resources_tools"}
        assert seeded.json["resources_session_id"] == "session-1"
        assert seeded.json["resources_tools"] == {
            "server_name": "Counter",
            "url_path": "/mcp",
            "transport": "http",
            "headers": {"X-Session-Id": "session-1"},
        }
        assert (await world.post("/seed_session", SEED, session=None)).body == seeded.body
        cookie = seeded.cookie
        await world.post("/increment_counter", {"count": 2}, session=None, cookie=cookie)
        verified = await world.post("/verify", {"response": {"output": []}}, session=None, cookie=cookie)
        assert verified.json["reward"] == 1.0
        for _ in range(2):
            closed = await world.post("/close_session", CLOSE, session=None)
            assert (closed.status, closed.json) == (200, {"resources_session_id": "session-1"})
        assert (await world.post("/seed_session", SEED, session=None)).status == 410


async def test_a_typed_close_of_what_never_was(serve: Serve) -> None:
    """200, and a seed that comes after it is refused."""
    async with serve(Counter) as world:
        assert (await world.post("/close_session", CLOSE, session=None)).status == 200
        assert (await world.post("/seed_session", SEED, session=None)).status == 410
        assert (await world.post("/seed_session", {**SEED, "resources_session_id": 7}, session=None)).status == 400


async def test_a_materialised_row(serve: Serve) -> None:
    """`{task_id, task_input}` is the row inside it; the same row flat is another spelling of it."""
    async with serve(Counter) as world:
        assert (await world.post("/seed_session", {"task_id": {"task_id": "1"}, "task_input": DATA})).status == 200
        assert (await world.post("/get_counter_value")).json == {"count": 0}
    nested = {"task_input": {"responses_create_params": {"input": "x"}, "task_data": DATA}}
    assert row_of(nested)["expected_count"] == 2


async def test_every_health_path_answers(serve: Serve) -> None:
    """Those that its launcher asks."""
    async with serve(Counter) as world:
        for path in ("/livez", "/readyz", "/healthz", "/health", "/"):
            assert (await world.get(path)).status == 200
        assert (await world.get("/health")).json["environment"] == {"name": "Counter", "version": "1"}
