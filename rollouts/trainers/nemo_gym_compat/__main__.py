"""`python -m rollouts.trainers.nemo_gym_compat` prints the folder to put on PYTHONPATH."""

import sys

from rollouts.trainers.nemo_gym_compat import FOLDER

sys.stdout.write(FOLDER + "\n")
