from resources_server.docstrings import describe


def test_a_description_may_run_over_several_lines() -> None:
    """What is indented deeper belongs to the argument above; a colon in it does not start a new one."""
    told = describe(
        """Take units off the shelf.

        Only whole units.

        Args:
            product: Exact product name,
                as `list_stock` gives it. Note: case matters.
            units (int): How many;

                at least 1.

        Returns:
            The reservation.

        Raises:
            ToolError: Too many.
        """
    )
    assert told.arguments == {
        "product": "Exact product name, as `list_stock` gives it. Note: case matters.",
        "units": "How many; at least 1.",
    }
    assert told.summary == "Take units off the shelf.\n\nOnly whole units.\n\nReturns:\n    The reservation."


def test_a_docstring_without_arguments_is_all_description() -> None:
    """Nothing is lost where there is no section."""
    assert describe("Read the counter.").summary == "Read the counter."
    assert describe("Read the counter.").arguments == {}
