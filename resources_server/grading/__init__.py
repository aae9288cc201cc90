"""Verdicts that environments share: pure functions from what was produced and what was expected to a `Grade`.

`answers`, `trajectory` and `state` compare; `code` and `symbolic` run something in a process that can be
killed; `judge`, `reward_model` ask another model; `rubric` and `components` put parts together.
"""

from resources_server.grading.grade import Grade, right, wrong

__all__ = ["Grade", "right", "wrong"]
