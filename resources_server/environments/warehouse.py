"""A warehouse with a fixed stock: the agent reserves exactly what an order asks for."""

from random import Random
from typing import ClassVar

from pydantic import BaseModel

from resources_server import Call, Environment, Response, Task, ToolError, Verdict, tool


class WarehouseTask(Task):
    stock: dict[str, int]  # product -> units on the shelf
    order: dict[str, int]  # product -> units to reserve: the ground truth, never shown to the model


class Reservation(BaseModel):
    number: int  # 1, 2, 3, ... in the order they were made
    product: str
    units: int


class Warehouse(Environment[WarehouseTask]):
    blocking: ClassVar[bool] = False

    stock: dict[str, int] = {}
    reservations: dict[int, Reservation] = {}

    def seed(self) -> None:
        self.stock = dict(self.task.stock)

    @tool(read_only=True)
    def list_stock(self, prefix: str = "") -> dict[str, int]:
        """List units on the shelf by product.

        Args:
            prefix: Only products whose name starts with this.
        """
        return {product: units for product, units in self.stock.items() if product.startswith(prefix)}

    @tool
    def reserve(self, product: str, units: int) -> Reservation:
        """Take units of one product off the shelf for the order.

        Args:
            product: Exact product name, as `list_stock` gives it.
            units: How many; at least 1.
        """
        left = self.stock.get(product, 0)
        if not 1 <= units <= left:
            raise ToolError(f"cannot reserve {units} units of {product!r}: {left} are left")
        self.stock[product] -= units
        number = len(self.reservations) + 1
        self.reservations[number] = Reservation(number=number, product=product, units=units)
        return self.reservations[number]

    def verify(self, response: Response) -> Verdict:
        reserved: dict[str, int] = {}
        for each in self.reservations.values():
            reserved[each.product] = reserved.get(each.product, 0) + each.units
        return Verdict(reward=float(reserved == self.task.order), metrics={"reservations": len(self.reservations)})

    def disturb(self, dice: Random) -> str | None:
        spare = sorted(self.stock.keys() - self.task.order.keys())
        if not spare:
            return None
        gone = dice.choice(spare)
        del self.stock[gone]
        return f"no {gone} on the shelf"

    def solution(self) -> list[Call]:
        return [Call("reserve", {"product": product, "units": units}) for product, units in self.task.order.items()]
