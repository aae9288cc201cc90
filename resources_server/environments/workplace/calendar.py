"""The user's calendar."""

from typing import ClassVar

from resources_server import ToolError, tool
from resources_server.environments.workplace.arguments import EventChange, EventField, Id, Maybe, Page, PageSize, Text
from resources_server.environments.workplace.company import EVENTS, Layout, Row, Table
from resources_server.environments.workplace.records import Records, bound, page_of


class Calendar(Records):
    """Meetings, each with one participant beside the user."""

    layout: ClassVar[Layout] = EVENTS

    def _table(self) -> Table:
        return self._company.events

    def _fit(self, column: str, value: str) -> str:
        kept = super()._fit(column, value)
        if column == "duration" and (kept.startswith("-") or kept == "0"):
            raise ToolError(f"duration {kept!r} is not a number of minutes above 0")
        return kept

    @tool(read_only=True)
    def get_event_information_by_id(self, event_id: Id, field: EventField) -> dict[str, str]:
        """Read one field of an event.

        Args:
            event_id: Id of the event.
            field: The field to read; the duration is in minutes.
        """
        return self._cell(event_id, field)

    @tool(read_only=True)
    def search_events(
        self, query: Maybe = "", time_min: Maybe = "", time_max: Maybe = "", page: Page = 1, page_size: PageSize = 5
    ) -> dict[str, object]:
        """Search the calendar, newest first.

        Args:
            query: Text in the event's name or in the participant's address.
            time_min: Starts at this time or later, YYYY-MM-DD HH:MM:SS.
            time_max: Starts at this time or earlier, YYYY-MM-DD HH:MM:SS.
            page: Page of the result; `pagination` in the answer says how many there are.
            page_size: Events on a page.
        """
        part, first, last = query.strip().lower(), bound("time_min", time_min), bound("time_max", time_max, end=True)

        def wanted(row: Row, text: str) -> bool:
            start = row["event_start"]
            return first <= start and (not last or start <= last) and part in text

        return page_of(self._find(wanted), "events", page, page_size)

    @tool
    def create_event(self, event_name: Text, participant_email: Text, event_start: Text, duration: Text) -> str:
        """Put an event into the calendar; gives its id.

        Args:
            event_name: Name of the event.
            participant_email: E-mail address of the participant.
            event_start: Start, YYYY-MM-DD HH:MM:SS.
            duration: Length in minutes.
        """
        return self._create(
            {
                "event_name": event_name,
                "participant_email": participant_email,
                "event_start": event_start,
                "duration": duration,
            }
        )

    @tool
    def delete_event(self, event_id: Id) -> str:
        """Take an event out of the calendar.

        Args:
            event_id: Id of the event.
        """
        return f"Event {self._delete(event_id)} was deleted."

    @tool
    def update_event(self, event_id: Id, field: EventChange, new_value: Text) -> str:
        """Change one field of an event.

        Args:
            event_id: Id of the event.
            field: The field to change.
            new_value: Its new value; times as YYYY-MM-DD HH:MM:SS, durations in minutes.
        """
        return f"Event {self._update(event_id, field, new_value)} was updated."
