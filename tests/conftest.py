"""Fixtures that several folders of tests share."""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL of its own on a socket; run as an ordinary user where this one is root."""
    if not BINARIES and shutil.which("pg_ctl") is None:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    binaries = BINARIES[-1] if BINARIES else Path(shutil.which("pg_ctl") or "").parent
    folder = Path("/tmp") / f"trivium-pg-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o777)
    as_user = []
    if os.geteuid() == 0:
        as_user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        shutil.chown(folder, "nobody", "nogroup")
    run = [*as_user, "env", "LC_ALL=C"]
    try:
        subprocess.run([*run, binaries / "initdb", "-D", folder / "db", "-U", "trivium", "-A", "trust"], check=True)
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        subprocess.run([*run, binaries / "pg_ctl", "-D", folder / "db", "-w", "-o", options, "start"], check=True)
        try:
            yield f"postgresql://trivium@/postgres?host={folder}"
        finally:
            subprocess.run([*run, binaries / "pg_ctl", "-D", folder / "db", "-m", "immediate", "stop"], check=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
