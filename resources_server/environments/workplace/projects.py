"""The project boards: tasks that are assigned, moved between lists and done."""

from typing import ClassVar

from resources_server import ToolError, tool
from resources_server.environments.workplace.arguments import Id, Maybe, TaskChange, TaskField, Text
from resources_server.environments.workplace.company import TASKS, Layout, Row, Table
from resources_server.environments.workplace.records import Records, fit

CHOICES = {
    "list_name": ("Backlog", "In Progress", "In Review", "Completed"),
    "board": ("Back end", "Front end", "Design"),
}


class Projects(Records):
    """Tasks on three boards, each with four lists."""

    layout: ClassVar[Layout] = TASKS

    def _table(self) -> Table:
        return self._company.tasks

    def _fit(self, column: str, value: str) -> str:
        kept = super()._fit(column, value)
        if column in CHOICES and kept not in CHOICES[column]:
            raise ToolError(f"{column} {kept[:80]!r} is none of {', '.join(CHOICES[column])}")
        known = self._company.assignable
        if column == "assigned_to_email" and known is not None and kept not in known:
            raise ToolError(f"{kept[:80]!r} is nobody here; the company directory has the addresses")
        return kept

    @tool(read_only=True)
    def get_task_information_by_id(self, task_id: Id, field: TaskField) -> dict[str, str]:
        """Read one field of a task.

        Args:
            task_id: Id of the task.
            field: The field to read.
        """
        return self._cell(task_id, field)

    @tool(read_only=True)
    def search_tasks(
        self,
        task_name: Maybe = "",
        assigned_to_email: Maybe = "",
        list_name: Maybe = "",
        due_date: Maybe = "",
        board: Maybe = "",
    ) -> list[dict[str, str]]:
        """List all tasks that fit everything given; give at least one thing.

        Args:
            task_name: Text in the task's name.
            assigned_to_email: E-mail address of the person it is assigned to.
            list_name: Backlog, In Progress, In Review or Completed.
            due_date: Day on which it is due, YYYY-MM-DD.
            board: Back end, Front end or Design.
        """
        exact = {"assigned_to_email": assigned_to_email, "list_name": list_name, "board": board}
        cells = {column: value.strip().lower() for column, value in exact.items() if value.strip()}
        if due_date.strip():
            cells["due_date"] = fit("date", "due_date", due_date)
        part = task_name.strip().lower()
        if not cells and not part:
            raise ToolError("nothing to search for: give task_name, assigned_to_email, list_name, due_date or board")

        def wanted(row: Row, text: str) -> bool:
            return part in text and all(row[column].lower() == value for column, value in cells.items())

        return [dict(row) for row in self._find(wanted)]

    @tool
    def create_task(
        self, task_name: Text, assigned_to_email: Text, list_name: Text, due_date: Text, board: Text
    ) -> str:
        """Add a task; gives its id.

        Args:
            task_name: Name of the task.
            assigned_to_email: E-mail address of the person who is to do it.
            list_name: Backlog, In Progress, In Review or Completed.
            due_date: Day on which it is due, YYYY-MM-DD.
            board: Back end, Front end or Design.
        """
        return self._create(
            {
                "task_name": task_name,
                "assigned_to_email": assigned_to_email,
                "list_name": list_name,
                "due_date": due_date,
                "board": board,
            }
        )

    @tool
    def delete_task(self, task_id: Id) -> str:
        """Delete a task.

        Args:
            task_id: Id of the task.
        """
        return f"Task {self._delete(task_id)} was deleted."

    @tool
    def update_task(self, task_id: Id, field: TaskChange, new_value: Text) -> str:
        """Change one field of a task.

        Args:
            task_id: Id of the task.
            field: The field to change.
            new_value: Its new value; dates as YYYY-MM-DD.
        """
        return f"Task {self._update(task_id, field, new_value)} was updated."
