"""Writes train.jsonl, validation.jsonl and example.jsonl: puzzles with exactly one solution. `python data/sudoku/make.py`"""

import json
import random
from collections.abc import Iterator
from pathlib import Path

SEED = 13
HERE = Path(__file__).parent
Grid = list[list[int]]


def fitting(grid: Grid, row: int, column: int) -> list[int]:
    """Digits that a cell may take."""
    size = len(grid)
    box = int(size**0.5)
    top, left = row - row % box, column - column % box
    seen = {
        *grid[row],
        *(line[column] for line in grid),
        *(grid[top + y][left + x] for y in range(box) for x in range(box)),
    }
    return [digit for digit in range(1, size + 1) if digit not in seen]


def solutions(grid: Grid, dice: random.Random | None = None) -> Iterator[Grid]:
    """Every completion of a grid, the emptiest choices first."""
    empty = [(row, column) for row, line in enumerate(grid) for column, cell in enumerate(line) if not cell]
    if not empty:
        yield [list(line) for line in grid]
        return
    row, column = min(empty, key=lambda cell: len(fitting(grid, *cell)))
    digits = fitting(grid, row, column)
    if dice:
        dice.shuffle(digits)
    for digit in digits:
        grid[row][column] = digit
        yield from solutions(grid, dice)
    grid[row][column] = 0


def puzzle(size: int, clues: int, dice: random.Random) -> tuple[Grid, Grid]:
    """A puzzle of about so many clues and its only solution."""
    solved = next(solutions([[0] * size for _ in range(size)], dice))
    grid = [list(line) for line in solved]
    cells = [(row, column) for row in range(size) for column in range(size)]
    dice.shuffle(cells)
    left = size * size
    for row, column in cells:
        if left <= clues:
            break
        kept, grid[row][column] = grid[row][column], 0
        found = solutions([list(line) for line in grid])
        next(found)
        if next(found, None) is None:
            left -= 1
        else:
            grid[row][column] = kept
    return grid, solved


def row(number: int, dice: random.Random) -> dict[str, object]:
    size, clues = [(4, 12), (4, 8), (4, 6), (9, 60), (9, 40)][number % 5]
    grid, solved = puzzle(size, clues, dice)
    shown = "\n".join(" ".join(str(cell) if cell else "." for cell in line) for line in grid)
    prompt = (
        f"Solve this {size}x{size} Sudoku: every row, column and box has each digit from 1 to {size} once.\n{shown}\n"
        f"Answer with the finished grid, {size} lines of {size} digits parted by spaces."
    )
    return {
        "task_id": f"sudoku-{number:03}",
        "responses_create_params": {"input": prompt},
        "difficulty": f"{size}x{size}, {clues} clues",
        "puzzle": grid,
        "solution": solved,
    }


def main() -> None:
    dice = random.Random(SEED)
    rows = [json.dumps(row(number, dice)) + "\n" for number in range(250)]
    HERE.joinpath("train.jsonl").write_text("".join(rows[:200]))
    HERE.joinpath("validation.jsonl").write_text("".join(rows[200:]))
    HERE.joinpath("example.jsonl").write_text("".join(rows[:10]))


if __name__ == "__main__":
    main()
