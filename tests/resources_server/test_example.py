"""The example of the authoring guide, as it is written there: it has to run as it is, and to stay this short."""

from pydantic import BaseModel

from resources_server import Environment, Response, Task, ToolError, Verdict, tool
from tests.resources_server.conftest import Serve


class WarehouseTask(Task):
    stock: dict[str, int]  # product -> units on the shelf
    order: dict[str, int]  # product -> units to reserve: the ground truth, never shown to the model


class Reservation(BaseModel):
    number: int  # 1, 2, 3, ... in the order they were made
    product: str
    units: int


class Warehouse(Environment[WarehouseTask]):
    stock: dict[str, int] = {}
    reservations: dict[int, Reservation] = {}

    def seed(self) -> None:
        self.stock = dict(self.task.stock)

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


async def test_the_guides_example_runs_as_it_is_written(serve: Serve) -> None:
    """No word about threads, sessions or schemas; its row is the guide's."""
    row = {
        "responses_create_params": {"input": "Reserve two bolts."},
        "stock": {"bolt": 2, "nut": 9},
        "order": {"bolt": 2},
    }
    async with serve(Warehouse) as world:
        await world.post("/seed_session", row)
        assert (await world.post("/reserve", {"product": "bolt", "units": 2})).json["number"] == 1
        done = (await world.post("/verify", {**row, "response": {"output": []}})).json
        assert (done["reward"], done["metrics"]) == (1.0, {"reservations": 1.0})
        assert Warehouse.model_validate({"task": row, **done["state"]}).verify(Response()).reward == 1.0
