"""The web site's visits, to be read, and plots of them, to be made."""

from collections.abc import Callable
from typing import ClassVar, TypeVar

from resources_server import ToolError, tool
from resources_server.environments.workplace.arguments import Id, Maybe, Plotted, PlotType, Text
from resources_server.environments.workplace.company import PLOTS, Day, Layout, Table, table
from resources_server.environments.workplace.records import Records, fit

SOURCES = ("direct", "referral", "search engine", "social media")
NO_PLOTS = table(PLOTS, [])
N = TypeVar("N", int, float)


class Analytics(Records):
    """The record of plots that were made; empty before a session."""

    layout: ClassVar[Layout] = PLOTS

    def _table(self) -> Table:
        return NO_PLOTS

    @tool(read_only=True)
    def get_visitor_information_by_id(self, visitor_id: Id) -> list[dict[str, str]]:
        """List all visits of one visitor.

        Args:
            visitor_id: Id of the visitor.
        """
        visits = self._company.visits.by_visitor
        key = visitor_id.strip()
        found = visits.get(key) or visits.get(key.zfill(4))
        if not found:
            raise ToolError(f"no visitor has the id {key[:80]!r}")
        return [dict(row) for row in found]

    @tool
    def create_plot(self, time_min: Text, time_max: Text, value_to_plot: Plotted, plot_type: PlotType) -> str:
        """Plot the visits of a range of days; gives the path of the picture.

        Args:
            time_min: First day, YYYY-MM-DD.
            time_max: Last day, YYYY-MM-DD.
            value_to_plot: What to plot per day.
            plot_type: Kind of plot.
        """
        first, last = fit("date", "time_min", time_min), fit("date", "time_max", time_max)
        if first > last:
            raise ToolError(f"time_min {first} is after time_max {last}")
        path = f"plots/{first}_{last}_{value_to_plot}_{plot_type}.png"
        self._create(
            {
                "path": path,
                "time_min": first,
                "time_max": last,
                "value_to_plot": value_to_plot,
                "plot_type": plot_type,
            }
        )
        return path

    @tool(read_only=True)
    def total_visits_count(self, time_min: Maybe = "", time_max: Maybe = "") -> dict[str, int]:
        """Count the visits of each day.

        Args:
            time_min: First day, YYYY-MM-DD.
            time_max: Last day, YYYY-MM-DD.
        """
        return self._by_day(time_min, time_max, lambda day: day.visits)

    @tool(read_only=True)
    def engaged_users_count(self, time_min: Maybe = "", time_max: Maybe = "") -> dict[str, int]:
        """Count the engaged users of each day.

        Args:
            time_min: First day, YYYY-MM-DD.
            time_max: Last day, YYYY-MM-DD.
        """
        return self._by_day(time_min, time_max, lambda day: day.engaged)

    @tool(read_only=True)
    def traffic_source_count(
        self, time_min: Maybe = "", time_max: Maybe = "", traffic_source: Maybe = ""
    ) -> dict[str, int]:
        """Count the visits of each day that came from one source.

        Args:
            time_min: First day, YYYY-MM-DD.
            time_max: Last day, YYYY-MM-DD.
            traffic_source: direct, referral, search engine or social media; all of them if left out.
        """
        source = traffic_source.strip().lower()
        if source and source not in SOURCES:
            raise ToolError(f"traffic_source {traffic_source[:80]!r} is none of {', '.join(SOURCES)}")
        return self._by_day(time_min, time_max, lambda day: day.by_source.get(source, 0) if source else day.visits)

    @tool(read_only=True)
    def get_average_session_duration(self, time_min: Maybe = "", time_max: Maybe = "") -> dict[str, float]:
        """Give the average length of a visit on each day, in seconds.

        Args:
            time_min: First day, YYYY-MM-DD.
            time_max: Last day, YYYY-MM-DD.
        """
        return self._by_day(time_min, time_max, lambda day: round(day.seconds / day.visits, 2))

    def _by_day(self, time_min: str, time_max: str, value: Callable[[Day], N]) -> dict[str, N]:
        first = fit("date", "time_min", time_min) if time_min.strip() else ""
        last = fit("date", "time_max", time_max) if time_max.strip() else ""
        return {date: value(day) for date, day in self._company.visits.between(first, last)}
