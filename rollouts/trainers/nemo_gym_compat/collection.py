"""`RolloutCollectionHelper`: plays rows by the agents that a head server names."""

import asyncio
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Any

import aiohttp
import yaml

from rollouts import lines
from rollouts import token as tokens
from rollouts.export.gym import with_token_fields
from rollouts.settings import RolloutsSettings
from rollouts.trainers.nemo_gym_compat.running import BaseServerConfig
from wire import strict_json
from wire.errors import KINDS, TriviumError, UsageError

Row = dict[str, Any]
HEAD_S = 30.0  # for the head server to answer
CONFIG_PATH = "/global_config_dict_yaml"
NOT_IN_A_ROW = ("_rowidx",)  # the trainer's own, echoed to it and not sent


class RolloutFailed(TriviumError):
    """A rollout without a verdict, as trainers that classify failures by HTTP status want it.

    Attributes:
        status: 5xx where another try may go better, 4xx where not.
        response_content: The failed line.
    """

    def __init__(self, message: str, status: int, line: Row) -> None:
        super().__init__(message)
        self.status = status
        self.response_content = strict_json.dumps(line)[:4096].decode(errors="replace")


class RolloutCollectionHelper:
    """What NeMo RL plays its batches with."""

    def run_examples(
        self, examples: Sequence[Row], head_server_config: BaseServerConfig, semaphore: Any = None
    ) -> Iterator[Awaitable[tuple[Row, Row]]]:
        """Awaitables in the order in which rollouts end; each gives its row and the result. Called in a running event loop.

        A rollout that failed with something sampled comes back masked: reward 0, `instance_config.mask_sample`. One that has nothing to
        mask raises.

        Args:
            examples: Rows with `agent_ref.name`.
            head_server_config: Where agents are found.
            semaphore: An `asyncio.Semaphore` that bounds rollouts in flight; none: all at once.
        """
        batch = _Batch(head_server_config, semaphore, len(examples))
        return asyncio.as_completed([asyncio.ensure_future(batch.play(each)) for each in examples])


class _Batch:
    """One call of `run_examples`: one connection pool, closed with the last rollout."""

    def __init__(self, head: BaseServerConfig, semaphore: Any, size: int) -> None:
        self._head, self._semaphore, self._left = f"http://{head.host}:{head.port}", semaphore, size
        self._agents: asyncio.Task[dict[str, Row]] | None = None
        self._http: aiohttp.ClientSession | None = None

    async def play(self, example: Row) -> tuple[Row, Row]:
        """Raises `RolloutFailed`, or `UsageError` for an agent that is not there."""
        try:
            if self._semaphore is None:
                return example, await self._result(example)
            async with self._semaphore:
                return example, await self._result(example)
        finally:
            self._left -= 1
            if not self._left and self._http is not None:
                await self._http.close()

    async def _result(self, example: Row) -> Row:
        if self._http is None:
            limit = aiohttp.TCPConnector(limit=0)
            self._http = aiohttp.ClientSession(connector=limit, trust_env=False)
            self._agents = asyncio.create_task(self._directory(self._http))
        assert self._agents is not None
        agent = _agent(await asyncio.shield(self._agents), example)
        row = {key: value for key, value in example.items() if key not in NOT_IN_A_ROW}
        row.setdefault("environment", agent["environment"])
        return result(await self._post(self._http, agent["url"], row))

    async def _directory(self, http: aiohttp.ClientSession) -> dict[str, Row]:
        """Agent name -> its URL and environment."""
        async with http.get(self._head + CONFIG_PATH, timeout=aiohttp.ClientTimeout(HEAD_S)) as reply:
            reply.raise_for_status()
            listed = yaml.safe_load(strict_json.loads(await reply.read()))
        return agents(listed)

    async def _post(self, http: aiohttp.ClientSession, url: str, row: Row) -> Row:
        token, settings = tokens.given(), RolloutsSettings()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        limit = aiohttp.ClientTimeout(settings.timeout_s + settings.grace_s)
        body = strict_json.dumps(row)
        async with http.post(f"{url}/run", data=body, headers=headers, timeout=limit) as reply:
            raw = await reply.read()
            if reply.status != 200:
                raise RolloutFailed(f"{url}/run answered {reply.status}: {raw[:500]!r}", reply.status, row)
            line: Row = strict_json.loads(raw)
        return line


def agents(listed: Mapping[str, Any]) -> dict[str, Row]:
    """The agents of a head server's directory: URL, and the environment that each plays."""
    found: dict[str, Row] = {}
    for name, entry in listed.items():
        for agent in (entry.get("responses_api_agents") or {} if isinstance(entry, Mapping) else {}).values():
            environment = (agent.get("resources_server") or {}).get("name") or name
            found[name] = {"url": f"http://{agent['host']}:{agent['port']}", "environment": environment}
    return found


def _agent(known: Mapping[str, Row], example: Row) -> Row:
    """By the agent's name, the environment's, or the only one there is."""
    name = (example.get("agent_ref") or {}).get("name")
    for agent_name, agent in known.items():
        if name in (agent_name, agent["environment"]):
            return agent
    if len(known) == 1:
        return next(iter(known.values()))
    raise UsageError(f"agent_ref.name is {name!r}; agents are {', '.join(known)}")


def result(line: Row) -> Row:
    """A line as a trainer post-processes it.

    Raises:
        RolloutFailed: it has no verdict, and nothing that could be masked.
    """
    output = (line.get("response") or {}).get("output") or []
    if not lines.failed({"reward": line.get("reward")}):
        return {**line, "response": {**line["response"], "output": with_token_fields(line)}}
    failure = line.get("failure") or {}
    kind, message = str(failure.get("kind") or "agent_error"), str(failure.get("message") or "no verdict")
    if not any(item.get("generation_token_ids") for item in output):
        status = 503 if kind not in KINDS or KINDS[kind].retryable else 422
        raise RolloutFailed(f"{kind}: {message}", status, line)
    return {**line, "reward": 0.0, "instance_config": {**(line.get("instance_config") or {}), "mask_sample": True}}
