"""A package `nemo_gym` for trainers that import one: the names that NeMo RL uses, in front of our servers.

It lies in a folder that nothing imports from by itself, so that a real `nemo_gym` is never shadowed by accident. `install()` puts it on
this process's path; for processes that the trainer starts, such as Ray's actors, put it on theirs:

    export PYTHONPATH=$(python -m rollouts.trainers.nemo_gym_compat):$PYTHONPATH
"""

import sys
from pathlib import Path

from wire.errors import UsageError

FOLDER = str(Path(__file__).parent)


def install() -> None:
    """Let `import nemo_gym` find ours in this process.

    Raises:
        UsageError: another one has been imported already.
    """
    imported = sys.modules.get("nemo_gym")
    if imported is not None and not str(getattr(imported, "__file__", "")).startswith(FOLDER):
        raise UsageError(f"nemo_gym has been imported from {getattr(imported, '__file__', 'elsewhere')} already")
    if FOLDER not in sys.path:
        sys.path.insert(0, FOLDER)
