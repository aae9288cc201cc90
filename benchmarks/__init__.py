"""Speed, always beside the bare HTTP stack in the same run."""
