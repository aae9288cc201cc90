"""`RunHelper`: starts a stack of ours from the global config that a NeMo RL run hands over.

Of that config these keys are read: `policy_base_url` (one or a list), `policy_model_name`, `policy_api_key`, `head_server: {host, port}`,
and of ours `trivium: {configs: [name or path, …], overrides: [key=value, …]}`. Where `trivium` is missing, `config_paths` are taken for
our configs. Every other key is NeMo Gym's own and means nothing here.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from rollouts import stack as stacks
from rollouts import token as tokens
from rollouts.discovery import announced
from rollouts.launcher import Running, launched
from rollouts.stack import Stack
from rollouts.trainers.background import Background
from wire.errors import TriviumError, UsageError

HEAD_SERVER_KEY_NAME = "head_server"
OWN_KEY = "trivium"


class BaseServerConfig(BaseModel):
    """Where a server is."""

    host: str
    port: int


class GlobalConfigDictParserConfig(BaseModel):
    """What a trainer hands to `RunHelper.start`."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="allow")

    dotenv_path: Path | None = None
    """NeMo Gym's file of settings; not read."""
    initial_global_config_dict: Any = None
    """A mapping, omegaconf's `DictConfig` included."""
    skip_load_from_cli: bool = False
    """The command line is never looked at here."""


class RunHelper:
    """The servers of one training."""

    def __init__(self) -> None:
        self._background: Background | None = None
        self._running: Running | None = None

    def start(self, global_config_dict_parser_config: GlobalConfigDictParserConfig) -> None:
        """Start the stack and the head server that tells where it is; they end with `shutdown`, or with the process.

        The stack's token is in TRIVIUM_TOKEN of this process afterwards, where `RolloutCollectionHelper` finds it.

        Raises:
            UsageError: no config of ours is named, or it is wrong.
        """
        given = plain(global_config_dict_parser_config.initial_global_config_dict)
        stack = read_stack(given)
        head = given.get(HEAD_SERVER_KEY_NAME) or {}
        token = tokens.for_stack(stack.config.auth)
        background = Background("trivium-nemo-gym")
        try:
            servers = stack.servers()
            self._running = background.hold(launched(servers, token=token, elsewhere=stack.elsewhere(servers)))
            host, port = str(head.get("host") or "127.0.0.1"), int(head.get("port") or 0)
            background.hold(announced(stack, self._running.urls, port=port, host=host))
        except BaseException:
            background.close()
            raise
        if token is not None:
            os.environ[tokens.VARIABLE] = token
        self._background = background

    def poll(self) -> None:
        """Nothing while all is well; a server that dies is started again by itself.

        Raises:
            TriviumError: one died too often.
        """
        if self._running is not None and self._running.lost.is_set():
            raise TriviumError("a server died too often and was given up; its last words are in the log")

    def shutdown(self) -> None:
        """Stop everything. Again: nothing."""
        if self._background is not None:
            self._background.close()
            self._background = None


def read_stack(given: Mapping[str, Any]) -> Stack:
    """The stack that a global config describes: token ids on the items, and the trainer's own model server behind vLLM's interface.

    Raises:
        UsageError: it names no config of ours.
    """
    own = given.get(OWN_KEY) or {}
    configs = own.get("configs") or given.get("config_paths") or []
    if isinstance(configs, str):
        configs = [configs]
    if not configs:
        raise UsageError(
            f"env.nemo_gym.{OWN_KEY}.configs names no config: a bundled name such as `workplace`, or a file"
        )
    overrides = ["agent_server.token_ids=items", *_model(given), *own.get("overrides", [])]
    return stacks.read([str(each) for each in configs], overrides)


def _model(given: Mapping[str, Any]) -> list[str]:
    urls = given.get("policy_base_url")
    if not urls:
        return []
    listed: Sequence[str] = [urls] if isinstance(urls, str) else [str(each) for each in urls]
    settings = {
        "backend": "vllm",
        "base_urls": "[" + ",".join(listed) + "]",
        "model": given.get("policy_model_name"),
        "api_key": given.get("policy_api_key"),
        "token_ids": "required",
    }
    return [f"model_interface.{key}={value}" for key, value in settings.items() if value]


def plain(value: Any) -> dict[str, Any]:
    """A mapping as a dict of plain values."""
    if type(value).__module__.startswith("omegaconf"):
        from omegaconf import OmegaConf

        value = OmegaConf.to_container(value, resolve=False)
    return dict(value or {})
