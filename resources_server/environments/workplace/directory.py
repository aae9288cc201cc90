"""The company directory: from a name to a mail address."""

from pydantic import PrivateAttr

from resources_server import Toolkit, tool
from resources_server.environments.workplace.arguments import Maybe
from resources_server.environments.workplace.company import Company


class Directory(Toolkit):
    """Who works here. It never changes, so it has no state."""

    _company: Company = PrivateAttr()

    def open(self, company: Company) -> None:
        """Look at this company. Called for every new or restored world."""
        self._company = company

    @tool(read_only=True)
    def find_email_address(self, name: Maybe = "") -> list[str]:
        """Find colleagues' e-mail addresses by name.

        Args:
            name: First name, surname or part of either.
        """
        words = name.lower().split()
        return [address for address in self._company.addresses if all(word in address.lower() for word in words)]
