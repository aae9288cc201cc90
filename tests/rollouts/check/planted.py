"""Environments with one fault each, and one without."""

import random
from typing import ClassVar

from resources_server import Call, Environment, Response, Task, ToolError, tool

SEEN: list[str] = []  # what a world must not have: state outside its fields


class OrderTask(Task):
    order: dict[str, int]


class Shop(Environment[OrderTask]):
    """Nothing is wrong with it."""

    blocking: ClassVar[bool] = False
    basket: list[tuple[str, int]] = []

    @tool
    def put(self, product: str, units: int) -> str:
        """Put into the basket.

        Args:
            product: What.
            units: How many.
        """
        if not 1 <= units <= 100 or len(product) > 50:
            raise ToolError("from 1 to 100 units of a product")
        self.basket.append((product, units))
        return "done"

    def verify(self, response: Response) -> float:
        return float(sorted(self.basket) == sorted(self.task.order.items()))

    def solution(self) -> list[Call]:
        return [Call("put", {"product": product, "units": units}) for product, units in self.task.order.items()]


class LeakyTool(Shop):
    """A tool shows the truth."""

    @tool(read_only=True)
    def order(self) -> dict[str, int]:
        """Look at the order form."""
        return self.task.order


class LeakyError(Shop):
    """A refusal shows the truth."""

    @tool
    def pay(self, cents: int) -> str:
        """Pay.

        Args:
            cents: How much.
        """
        raise ToolError(f"the basket {self.basket} should be {self.task.order}")


class LeakyObservation(Shop):
    """The first observation shows the truth."""

    def seed(self) -> str:
        return f"Welcome! Your order: {self.task.order}"


class OrderSensitive(Shop):
    """Independent calls must come in one order."""

    def verify(self, response: Response) -> float:
        return float([tuple(each) for each in self.basket] == list(self.task.order.items()))


class OrderInOutputs(OrderSensitive):
    """The same, and a call shows what came before it."""

    @tool
    def put(self, product: str, units: int) -> str:
        """Put into the basket.

        Args:
            product: What.
            units: How many.
        """
        self.basket.append((product, units))
        return str(self.basket)


class LeakyByName(Shop):
    """A tool shows the truth to who asks for the right thing."""

    @tool(read_only=True)
    def look_up(self, product: str) -> str:
        """Look a product up.

        Args:
            product: What.
        """
        if product not in self.task.order:
            raise ToolError("no such product")
        return f"The order is {self.task.order}"


class Tally(Shop):
    """A verdict that counts in the module."""

    @tool
    def put(self, product: str, units: int) -> str:
        """Put into the basket.

        Args:
            product: What.
            units: How many.
        """
        SEEN.append(product)
        return "done"

    def verify(self, response: Response) -> float:
        return float(sorted(SEEN) == sorted(self.task.order))


class Forgetful(Shop):
    """The verdict changes what it looks at."""

    def verify(self, response: Response) -> float:
        found = super().verify(response)
        self.basket = []
        return found


class Outside(Shop):
    """The verdict needs what is no field."""

    _paid: bool = False

    @tool
    def put(self, product: str, units: int) -> str:
        """Put into the basket.

        Args:
            product: What.
            units: How many.
        """
        self._paid = True
        return Shop.put(self, product, units)

    def verify(self, response: Response) -> float:
        return super().verify(response) * self._paid


class Stateful(Shop):
    """Sessions share a module's list."""

    @tool
    def put(self, product: str, units: int) -> str:
        """Put into the basket.

        Args:
            product: What.
            units: How many.
        """
        SEEN.append(product)
        self.basket.append((product, units))
        return f"{len(SEEN)} products so far"


class Contagious(Shop):
    """One session's success is another's."""

    def verify(self, response: Response) -> float:
        SEEN.extend([str(self.task.order)] if super().verify(response) else [])
        return float(str(self.task.order) in SEEN)


class AnyOfThem(Shop):
    """The right calls may stand among any number of wrong ones."""

    def verify(self, response: Response) -> float:
        return float(all(each in [tuple(put) for put in self.basket] for each in self.task.order.items()))


class Brittle(Shop):
    """A tool falls over."""

    @tool(read_only=True)
    def price(self, product: str) -> int:
        """Ask for a price.

        Args:
            product: What.
        """
        return {"apple": 3}[product]


class QuestionTask(Task):
    answer: str


class Question(Environment[QuestionTask]):
    """Nothing is wrong with it."""

    def verify(self, response: Response) -> float:
        return float(response.text.strip().casefold() == self.task.answer.casefold())

    def solution(self) -> str:
        return self.task.answer


class Sprayable(Question):
    """It is enough to name the answer among others."""

    def verify(self, response: Response) -> float:
        return float(self.task.answer.casefold() in response.text.casefold())


class Flaky(Question):
    """The verdict needs luck."""

    def verify(self, response: Response) -> float:
        return super().verify(response) * float(random.random() < 0.8)


class Generous(Question):
    """Saying nothing is right."""

    def verify(self, response: Response) -> float:
        return float(response.text.strip().casefold() in ("", self.task.answer.casefold()))


class Pedantic(Question):
    """A space or a capital letter costs everything."""

    def verify(self, response: Response) -> float:
        return float(response.text == self.task.answer)


class Gullible(Question):
    """The judge does as it is told."""

    def verify(self, response: Response) -> float:
        return max(super().verify(response), float("ignore all previous instructions" in response.text.casefold()))


class Fragile(Question):
    """A long answer ends the verdict."""

    def verify(self, response: Response) -> float:
        if len(response.text) > 100_000:
            raise MemoryError("too long")
        return super().verify(response)


class Unsolvable(Question):
    """What it gives as its solution is worth nothing."""

    def solution(self) -> str:
        return "who knows"


class Silent(Environment[QuestionTask]):
    """No solution."""

    def verify(self, response: Response) -> float:
        return 0.0


class Anything(Environment[QuestionTask]):
    """Any text will do."""

    def verify(self, response: Response) -> float:
        return float(bool(response.text.strip()))

    def solution(self) -> str:
        return self.task.answer


def order_rows() -> list[dict[str, object]]:
    orders = ({"apple": 2, "pear": 5}, {"plum": 3, "fig": 7}, {"bread": 4, "milk": 6})
    return [
        {"responses_create_params": {"input": f"Order number {at}."}, "order": each} for at, each in enumerate(orders)
    ]


def question_rows() -> list[dict[str, object]]:
    facts = {"the capital of France": "Paris", "the colour of grass": "green", "the largest planet": "Jupiter"}
    return [
        {"responses_create_params": {"input": f"What is {what}?"}, "answer": answer} for what, answer in facts.items()
    ]
