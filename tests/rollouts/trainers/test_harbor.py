"""Harbor's own models of the trajectory format read our files: `pytest -m peers`."""

import importlib
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from wire import jsonl

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(300)]
GOLDEN = Path(__file__).parents[1] / "export" / "golden" / "atif.jsonl"
PULL_S = 240


@pytest.fixture(scope="module")
def trajectory(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The class, from the wheel: the package asks for a newer Python, its models do not."""
    folder = tmp_path_factory.mktemp("harbor")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--python-version", "3.13", "--dest", str(folder), "harbor==0.26.0"]
    if subprocess.run(command, check=False, timeout=PULL_S).returncode:
        pytest.skip("harbor cannot be fetched")
    with zipfile.ZipFile(next(folder.glob("harbor-*.whl"))) as wheel:
        wanted = [each for each in wheel.namelist() if each.startswith("harbor/models/trajectories/")]
        wheel.extractall(folder, wanted)
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("harbor.models.trajectories").Trajectory
    finally:
        sys.path.remove(str(folder))


def test_harbor_reads_every_trajectory_that_we_write(trajectory: Any) -> None:
    """Validated strictly, and nothing of it is dropped."""
    for _, record in jsonl.read(GOLDEN):
        read = trajectory.model_validate(record)
        assert len(read.steps) == len(record["steps"])
        assert read.schema_version == record["schema_version"]
