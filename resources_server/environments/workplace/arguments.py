"""Argument types of the tools: what a model may write, in the schema it sees.

Models write numbers where a text is meant (`"duration": 30`) and null where they mean nothing at all; both are taken as meant.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from resources_server.environments.workplace.records import LARGEST_PAGE


def _as_text(value: Any) -> Any:
    """A JSON number as its digits; everything else as it is, for pydantic to judge."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _stripped(value: Any) -> Any:
    text = _as_text(value)
    return text.strip() if isinstance(text, str) else text


def _or_empty(value: Any) -> Any:
    return "" if value is None else _as_text(value)


def _or_first(value: Any) -> Any:
    return 1 if value is None else value


def _or_five(value: Any) -> Any:
    return 5 if value is None else value


Text = Annotated[str, BeforeValidator(_as_text)]
"""A text that must be given; a number is taken as its digits."""
Id = Annotated[str, Field(pattern=r"^[0-9]{1,8}$"), BeforeValidator(_stripped)]
"""The id of a row. The pattern also keeps a small model under constrained decoding from writing digits for ever."""
Maybe = Annotated[str, BeforeValidator(_or_empty)]
"""A text that may be left out: "" or null is the same as leaving it out."""
Page = Annotated[int, Field(ge=1), BeforeValidator(_or_first)]
PageSize = Annotated[int, Field(ge=1, le=LARGEST_PAGE), BeforeValidator(_or_five)]

EmailField = Literal["email_id", "inbox/outbox", "sender/recipient", "subject", "sent_datetime", "body"]
EventField = Literal["event_id", "event_name", "participant_email", "event_start", "duration"]
EventChange = Literal["event_name", "participant_email", "event_start", "duration"]
TaskField = Literal["task_id", "task_name", "assigned_to_email", "list_name", "due_date", "board"]
TaskChange = Literal["task_name", "assigned_to_email", "list_name", "due_date", "board"]
CustomerChange = Literal[
    "customer_name",
    "assigned_to_email",
    "customer_email",
    "customer_phone",
    "last_contact_date",
    "product_interest",
    "status",
    "notes",
    "follow_up_by",
]
Plotted = Literal[
    "total_visits",
    "session_duration_seconds",
    "user_engaged",
    "visits_direct",
    "visits_referral",
    "visits_search_engine",
    "visits_social_media",
]
PlotType = Literal["bar", "line", "scatter", "histogram"]
