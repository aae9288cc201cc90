"""The mailbox: read, search, send, forward, reply, delete."""

from typing import ClassVar

from resources_server import tool
from resources_server.environments.workplace.arguments import EmailField, Id, Maybe, Page, PageSize, Text
from resources_server.environments.workplace.company import EMAILS, Layout, Row, Table
from resources_server.environments.workplace.records import Records, bound, fit, page_of


class Mail(Records):
    """The user's mail, received (inbox) and sent (outbox)."""

    layout: ClassVar[Layout] = EMAILS

    def _table(self) -> Table:
        return self._company.emails

    @tool(read_only=True)
    def get_email_information_by_id(self, email_id: Id, field: EmailField) -> dict[str, str]:
        """Read one field of an e-mail.

        Args:
            email_id: Id of the e-mail.
            field: The field to read.
        """
        return self._cell(email_id, field)

    @tool(read_only=True)
    def search_emails(
        self, query: Maybe = "", date_min: Maybe = "", date_max: Maybe = "", page: Page = 1, page_size: PageSize = 5
    ) -> dict[str, object]:
        """Search the mailbox, newest first. An e-mail is found when every word is in its subject, body or address.

        Args:
            query: Words to look for.
            date_min: Sent on this day or later, YYYY-MM-DD.
            date_max: Sent on this day or earlier, YYYY-MM-DD.
            page: Page of the result; `pagination` in the answer says how many there are.
            page_size: E-mails on a page.
        """
        words, first, last = query.lower().split(), bound("date_min", date_min), bound("date_max", date_max, end=True)

        def wanted(row: Row, text: str) -> bool:
            sent = row["sent_datetime"]
            return first <= sent and (not last or sent <= last) and all(word in text for word in words)

        return page_of(self._find(wanted), "emails", page, page_size)

    @tool
    def send_email(self, recipient: Text, subject: Text, body: Text) -> str:
        """Send a new e-mail.

        Args:
            recipient: E-mail address.
            subject: Subject line.
            body: Text of the e-mail.
        """
        self._send(recipient, subject, body)
        return f"The e-mail to {recipient} was sent."

    @tool
    def delete_email(self, email_id: Id) -> str:
        """Delete an e-mail.

        Args:
            email_id: Id of the e-mail.
        """
        return f"E-mail {self._delete(email_id)} was deleted."

    @tool
    def forward_email(self, email_id: Id, recipient: Text) -> str:
        """Send an e-mail on to somebody else.

        Args:
            email_id: Id of the e-mail.
            recipient: E-mail address.
        """
        row = self._row(email_id)
        self._send(recipient, "FW: " + row["subject"], row["body"])
        return f"E-mail {row['email_id']} was forwarded to {recipient}."

    @tool
    def reply_email(self, email_id: Id, body: Text) -> str:
        """Answer an e-mail.

        Args:
            email_id: Id of the e-mail to answer.
            body: Text of the answer.
        """
        row = self._row(email_id)
        self._send(row["sender/recipient"], "RE: " + row["subject"], body)
        return f"E-mail {row['email_id']} was answered."

    def _send(self, recipient: str, subject: str, body: str) -> None:
        self._create(
            {
                "inbox/outbox": "outbox",
                "sender/recipient": fit("address", "recipient", recipient),
                "subject": subject,
                "sent_datetime": self._company.clock,
                "body": body,
            }
        )
