"""The customer relationship manager."""

from typing import ClassVar

from resources_server import ToolError, tool
from resources_server.environments.workplace.arguments import CustomerChange, Id, Maybe, Page, PageSize, Text
from resources_server.environments.workplace.company import CUSTOMERS, Layout, Row, Table
from resources_server.environments.workplace.records import Records, fit, page_of

STATUSES = ("Lead", "Qualified", "Proposal", "Won", "Lost")
MAY_BE_EMPTY = frozenset(
    {
        "customer_email",
        "customer_phone",
        "last_contact_date",
        "product_interest",
        "follow_up_by",
        "notes",
    }
)


class Customers(Records):
    """Customers and prospects, each with a colleague who looks after them."""

    layout: ClassVar[Layout] = CUSTOMERS

    def _table(self) -> Table:
        return self._company.customers

    def _fit(self, column: str, value: str) -> str:
        if column in MAY_BE_EMPTY and not str(value).strip():
            return ""
        kept = super()._fit(column, value)
        if column == "status" and kept not in STATUSES:
            raise ToolError(f"status {kept[:80]!r} is none of {', '.join(STATUSES)}")
        return kept

    @tool(read_only=True)
    def search_customers(
        self,
        customer_name: Maybe = "",
        customer_email: Maybe = "",
        product_interest: Maybe = "",
        status: Maybe = "",
        assigned_to_email: Maybe = "",
        last_contact_date_min: Maybe = "",
        last_contact_date_max: Maybe = "",
        follow_up_by_min: Maybe = "",
        follow_up_by_max: Maybe = "",
        page: Page = 1,
        page_size: PageSize = 5,
    ) -> dict[str, object]:
        """Search customers; all that fit everything given, in the order of their ids.

        Args:
            customer_name: Text in the customer's name.
            customer_email: Text in the customer's e-mail address.
            product_interest: Text in the product that interests them.
            status: Lead, Qualified, Proposal, Won or Lost.
            assigned_to_email: E-mail address of the colleague who looks after them.
            last_contact_date_min: Last contact on this day or later, YYYY-MM-DD.
            last_contact_date_max: Last contact on this day or earlier, YYYY-MM-DD.
            follow_up_by_min: Next contact due on this day or later, YYYY-MM-DD.
            follow_up_by_max: Next contact due on this day or earlier, YYYY-MM-DD.
            page: Page of the result; `pagination` in the answer says how many there are.
            page_size: Customers on a page.
        """
        given = {
            "customer_name": customer_name,
            "customer_email": customer_email,
            "product_interest": product_interest,
            "status": status,
            "assigned_to_email": assigned_to_email,
        }
        parts = {column: text.strip().lower() for column, text in given.items() if text.strip()}
        ranges = _ranges(
            ("last_contact_date", last_contact_date_min, last_contact_date_max),
            ("follow_up_by", follow_up_by_min, follow_up_by_max),
        )

        def wanted(row: Row, _: str) -> bool:
            return all(part in row[column].lower() for column, part in parts.items()) and all(
                row[column] and first <= row[column] <= last for column, first, last in ranges
            )

        return page_of(self._find(wanted), "customers", page, page_size)

    @tool
    def add_customer(
        self,
        customer_name: Text,
        assigned_to_email: Text,
        status: Text,
        customer_email: Maybe = "",
        customer_phone: Maybe = "",
        last_contact_date: Maybe = "",
        product_interest: Maybe = "",
        notes: Maybe = "",
        follow_up_by: Maybe = "",
    ) -> str:
        """Add a customer; gives its id.

        Args:
            customer_name: Name of the customer.
            assigned_to_email: E-mail address of the colleague who looks after them.
            status: Lead, Qualified, Proposal, Won or Lost.
            customer_email: E-mail address of the customer.
            customer_phone: Telephone number of the customer.
            last_contact_date: Day of the last contact, YYYY-MM-DD.
            product_interest: The product that interests them.
            notes: Notes.
            follow_up_by: Day by which they are to hear from us, YYYY-MM-DD.
        """
        return self._create(
            {
                "customer_name": customer_name,
                "assigned_to_email": assigned_to_email,
                "status": status,
                "customer_email": customer_email,
                "customer_phone": customer_phone,
                "last_contact_date": last_contact_date,
                "product_interest": product_interest,
                "notes": notes,
                "follow_up_by": follow_up_by,
            }
        )

    @tool
    def delete_customer(self, customer_id: Id) -> str:
        """Delete a customer.

        Args:
            customer_id: Id of the customer.
        """
        return f"Customer {self._delete(customer_id)} was deleted."

    @tool
    def update_customer(self, customer_id: Id, field: CustomerChange, new_value: Text) -> str:
        """Change one field of a customer.

        Args:
            customer_id: Id of the customer.
            field: The field to change.
            new_value: Its new value; dates as YYYY-MM-DD.
        """
        return f"Customer {self._update(customer_id, field, new_value)} was updated."


def _ranges(*given: tuple[str, str, str]) -> list[tuple[str, str, str]]:
    """(column, first, last) of those ranges that have a limit."""
    found = []
    for column, low, high in given:
        if low.strip() or high.strip():
            first = fit("date", f"{column}_min", low) if low.strip() else ""
            last = fit("date", f"{column}_max", high) if high.strip() else "9999-12-31"
            found.append((column, first, last))
    return found
