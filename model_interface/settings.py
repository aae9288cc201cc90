"""The `model_interface` section of a config: which model answers, where it is, and the bounds of every call to it.

Nothing heavy is imported here: the command reads sections by name before any server starts.
"""

import re
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from wire.config import Port

_ROUTE = re.compile(r"(?:/chat/completions|/completions|/responses|/messages|/models|(?<=/v1)/chat)\Z", re.IGNORECASE)
_VERSION = re.compile(r"(?:/v1)+\Z", re.IGNORECASE)
_NO_PART_OF_A_URL = re.compile(r"[\s\\\"<>{}|^`]")
_USER = re.compile(r"[^/\s]*@")  # which may hold a password


class ConversationBounds(BaseModel):
    """How much is remembered behind `previous_response_id`; what goes over it is sent again by the agent."""

    model_config = ConfigDict(extra="forbid")

    max: int = Field(10_000, ge=1, le=10_000_000)
    """Conversations held; the one unused longest goes first."""
    max_bytes: int = Field(512 * 2**20, ge=2**20, le=2**40)
    """Bytes held in all, about."""
    ttl_s: float = Field(3600.0, gt=0, le=7 * 86400, allow_inf_nan=False)
    """Seconds without a call after which a conversation is dropped."""


class CaptureBounds(BaseModel):
    """How much is recorded under `/rollouts/<id>/`."""

    model_config = ConfigDict(extra="forbid")

    max: int = Field(2_000, ge=1, le=1_000_000)
    """Rollouts recorded at once; the one unused longest goes first, closed ones before open ones."""
    max_calls: int = Field(1_000, ge=1, le=100_000)
    """Calls of one rollout; more are refused (429)."""
    max_bytes: int = Field(512 * 2**20, ge=2**20, le=2**40)
    """Bytes recorded in all, about."""
    ttl_s: float = Field(3600.0, gt=0, le=7 * 86400, allow_inf_nan=False)
    """Seconds without a call after which a record is dropped."""


class ModelInterfaceSettings(BaseModel):
    """A Responses endpoint in front of any model."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    backend: str = "local"
    """How the model is reached: chat, vllm, responses, local, scripted, reference, or `module:Class`."""
    base_url: str | None = None
    """Where an OpenAI-compatible server answers, such as http://127.0.0.1:8000/v1; `/v1` may be left out."""
    base_urls: list[str] = []
    """Replicas of one model, in place of `base_url`: a rollout stays with one of them while it is healthy."""
    model: str | None = None
    """The name the server knows the model by; a request's own `model` is used where this is unset."""
    api_key: SecretStr | None = None
    """Sent as a bearer token; write ${oc.env:NAME}, never the key itself."""
    headers: dict[str, SecretStr] = {}
    """Further headers of every upstream request; masked wherever the config is shown."""
    extra_body: dict[str, Any] = {}
    """Further fields of every upstream request body; they win over what the agent asks for."""
    host: str = "127.0.0.1"
    """Address the server binds."""
    port: Port = 0
    """Port the server binds; 0 = any free one."""
    url: str | None = None
    """Where others reach this server, if not at host and port."""
    attempts: int = Field(3, ge=1, le=20)
    """Tries of one upstream call in all, within the rollout's budget."""
    timeout_s: float = Field(600.0, gt=0, le=86400, allow_inf_nan=False)
    """Seconds for one try of an upstream call; the rollout's budget may leave less."""
    concurrency: int = Field(512, ge=1, le=65536)
    """Upstream calls in flight per endpoint at most; fewer while the endpoint pushes back."""
    token_ids: Literal["off", "auto", "required"] = "auto"
    """Token ids and log-probabilities of each call: never, where the backend has them, or else fail."""
    tool_calls: Literal["native", "constrained"] | None = None
    """constrained: the answer is held by a JSON schema to one of the tools' calls or a final answer. Unset: constrained for `local`,
    whose small models cannot be trusted with more, native elsewhere."""
    reasoning: Literal["auto", "think", "off"] = "auto"
    """think: reasoning is in the text between <think> tags; off: the text is left as it is; auto: whichever is there."""
    max_body_bytes: int = Field(64 * 2**20, ge=1024, le=2**32)
    """Bytes of one upstream answer at most."""
    conversations: ConversationBounds = ConversationBounds()
    captures: CaptureBounds = CaptureBounds()
    options: dict[str, Any] = {}
    """What the backend alone understands."""

    @field_validator("token_ids", "reasoning", mode="before")
    @classmethod
    def _bare_off(cls, value: Any) -> Any:
        return "off" if value is False else value  # YAML 1.1 reads a bare `off` as false

    @field_validator("base_url")
    @classmethod
    def _one_spelling(cls, value: str | None) -> str | None:
        return None if value is None else normalise_base_url(value)

    @field_validator("base_urls")
    @classmethod
    def _same_spelling(cls, value: list[str]) -> list[str]:
        return list(dict.fromkeys(normalise_base_url(each) for each in value))

    @property
    def endpoints(self) -> list[str]:
        """Normalised base URLs of every replica, without a slash at the end."""
        return self.base_urls or ([self.base_url] if self.base_url else [])


def normalise_base_url(url: str) -> str:
    """One spelling of an OpenAI-compatible server's address: with its `/v1`, without a slash at the end.

    `http://h:8000`, `…:8000/`, `…:8000//v1/`, `…:8000/V1` and `…:8000/v1/chat/completions` are all `http://h:8000/v1`; a path that
    is no API route, such as a gateway's `/openai`, is kept.

    Raises:
        ValueError: it is no http(s) URL, its port is none, or it carries a user, a query or a fragment (a key belongs in `api_key`).
    """
    shown = repr(_USER.sub("***@", url.strip()))
    wanted = f"{shown} is no URL of a model server; write http://host:port/v1"
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise ValueError(f"{wanted} ({error})") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or _NO_PART_OF_A_URL.search(url.strip()):
        raise ValueError(wanted)
    if port == 0:
        raise ValueError(f"{wanted} (nothing answers at port 0)")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError(
            f"the URL of {parts.hostname} carries a user, query or fragment; put keys into api_key or headers"
        )
    path = re.sub(r"/+", "/", parts.path).rstrip("/")
    path = _VERSION.sub("/v1", _ROUTE.sub("", path))
    return f"{parts.scheme}://{parts.netloc.removesuffix(':')}{path or '/v1'}"
