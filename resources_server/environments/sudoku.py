"""Sudoku, 4x4 and 9x9, one solution each: the answer is a grid in text, so that `/verify` needs no session."""

import re

from pydantic import Field

from resources_server import Environment, Response, Task, Verdict

Grid = list[list[int]]
DIGIT = re.compile(r"\d")


class SudokuTask(Task):
    puzzle: list[list[int]] = Field(min_length=4, max_length=9)  # 0 where empty
    solution: list[list[int]]  # the ground truth, never shown


class Sudoku(Environment[SudokuTask]):
    """The last complete grid of the answer counts. Any grid that obeys the rules and the clues is right."""

    stateless = True
    blocking = False

    def verify(self, response: Response) -> Verdict:
        puzzle = self.task.puzzle
        size = len(puzzle)
        grid = last_grid(response.text, size)
        if grid is None:
            return Verdict(
                reward=0.0, metrics={"grid_found": 0.0}, reason=f"no grid of {size} rows of {size} digits in the answer"
            )
        kept = all(
            clue in (0, cell)
            for clues, cells in zip(puzzle, grid, strict=True)
            for clue, cell in zip(clues, cells, strict=True)
        )
        right = sum(
            a == b for row, want in zip(grid, self.task.solution, strict=True) for a, b in zip(row, want, strict=True)
        )
        solved = kept and obeys_the_rules(grid)
        metrics = {"grid_found": 1.0, "clues_kept": float(kept), "cells_right": right / size**2}
        reason = None if solved else "a clue was changed" if not kept else "a row, column or box repeats a digit"
        return Verdict(reward=float(solved), metrics=metrics, reason=reason)

    def solution(self) -> str:
        return "\n".join(" ".join(map(str, row)) for row in self.task.solution)


def last_grid(text: str, size: int) -> Grid | None:
    """The last run of `size` lines with `size` digits each; lines between them may be rulers."""
    rows: Grid = []
    found: Grid | None = None
    for line in text.splitlines():
        digits = [int(each) for each in DIGIT.findall(line)]
        if len(digits) == size and not re.search(r"[A-Za-z]", line):
            rows.append(digits)
            if len(rows) >= size:
                found = rows[-size:]
        elif digits or re.search(r"\w", line):
            rows = []
    return found


def obeys_the_rules(grid: Grid) -> bool:
    """Every row, column and box has each digit once."""
    size = len(grid)
    box = int(size**0.5)
    digits = set(range(1, size + 1))
    columns = [list(column) for column in zip(*grid, strict=True)]
    boxes = [
        [grid[top + y][left + x] for y in range(box) for x in range(box)]
        for top in range(0, size, box)
        for left in range(0, size, box)
    ]
    return all(set(group) == digits for group in (*grid, *columns, *boxes))
