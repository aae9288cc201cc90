"""The symbolic verdict's process: trees in, sympy's opinion out. Run as a script; killed when it takes too long.

The tree comes from `latex`, given as a path, and holds numbers, symbols and known operations only. Powers and
factorials whose value would be astronomically large stay unevaluated.
"""

from __future__ import annotations

import importlib.util
import json
import resource
import signal
import sys
from typing import Any

import sympy

BITS = 20_000  # an integer power with more stays as it is
FACTORIAL = 1_000
POINTS = ((0.3147, 0.1), (1.7321, -0.2), (2.6458, 0.3))  # where two expressions are compared as a last resort
CALLS = {
    "ln": sympy.log, "log": sympy.log, "arcsin": sympy.asin, "arccos": sympy.acos, "arctan": sympy.atan, "abs": sympy.Abs,
    "floor": sympy.floor, "ceil": sympy.ceiling, "max": sympy.Max, "min": sympy.Min, "binomial": sympy.binomial,
    "lg": lambda x: sympy.log(x, 10),
} | {
    name: getattr(sympy, name)
    for name in "sin cos tan cot sec csc asin acos atan sinh cosh tanh exp gcd lcm".split()  # noqa: SIM905
}  # fmt: skip
CONSTANTS = {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "oo": sympy.oo}


def build(node: tuple[Any, ...]) -> Any:
    """The sympy object of a tree: an expression, a tuple, a frozenset, a Set, a Matrix or a relation."""
    kind, parts = node[0], node[1:]
    if kind == "number":
        return sympy.Rational(parts[0])
    if kind == "symbol":
        return CONSTANTS.get(parts[0]) or sympy.Symbol(parts[0])
    if kind in ("list", "tuple"):
        return (kind, *map(build, parts))
    if kind == "set":
        return sympy.FiniteSet(*map(build, parts))
    if kind == "matrix":
        return sympy.Matrix([[build(cell) for cell in row] for row in parts])
    if kind == "interval":
        opened, low, high, closed = parts
        return ("interval", build(low), build(high), opened == "(", closed == ")")
    if kind == "union":
        return ("union", *map(build, parts))
    if kind == "relation":
        return ("relation", *(part if isinstance(part, str) else build(part) for part in parts))
    if kind == "plusminus":
        left, right = map(build, parts)
        return sympy.FiniteSet(left + right, left - right)
    return operation(kind, parts)


def operation(kind: str, parts: tuple[Any, ...]) -> Any:
    if kind == "call":
        values = [build(each) for each in parts[1:]]
        if any(isinstance(value, tuple) for value in values):
            raise ValueError(f"{parts[0]} of a list")
        return CALLS[parts[0]](*values)
    values = [build(each) for each in parts]
    if any(isinstance(value, tuple) for value in values):
        raise ValueError("arithmetic with lists")
    if kind == "power":
        return power(*values)
    if kind == "factorial":
        small = values[0].is_Integer and values[0] <= FACTORIAL
        return sympy.factorial(values[0]) if small else sympy.factorial(values[0], evaluate=False)
    if kind == "root":
        return sympy.root(*values)
    if kind == "negate":
        return -values[0]
    if kind == "add":
        return values[0] + values[1]
    if kind == "subtract":
        return values[0] - values[1]
    return values[0] * values[1] if kind == "multiply" else values[0] / values[1]


def power(base: Any, exponent: Any) -> Any:
    """The power, unevaluated where its digits would fill the memory: 9^9^9."""
    if base.is_Rational and exponent.is_Rational:
        digits = max(abs(base.p), abs(base.q)).bit_length() * abs(exponent.p)
        if digits > BITS:
            return sympy.Pow(base, exponent, evaluate=False)
    elif exponent.is_number and not exponent.is_Rational and base.is_Rational and exponent.has(sympy.Pow):
        return sympy.Pow(base, exponent, evaluate=False)
    return base**exponent


def same(one: Any, other: Any, tolerance: float, ordered: bool) -> bool:
    """Equal as mathematics."""
    one = solution(one, other)
    other = solution(other, one)
    one = solution(one, other)
    if one_of(one, "list") and one_of(other, "list") and not ordered:
        return matched(list(one[1:]), list(other[1:]), tolerance)
    one, other = plain(one, other), plain(other, one)
    if one_of(one, "relation") or one_of(other, "relation"):
        return one_of(one, "relation") and one_of(other, "relation") and same_relation(one, other)
    if isinstance(one, tuple) or isinstance(other, tuple):
        if not (isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other)):
            return False
        alike = one[0] == other[0] or {one[0], other[0]} <= {"list", "tuple", "interval"}
        if one[0] == "union" and alike:
            return matched(list(one[1:]), list(other[1:]), tolerance)
        return alike and all(same(a, b, tolerance, ordered) for a, b in zip(one[1:], other[1:], strict=True))
    if isinstance(one, sympy.Set) or isinstance(other, sympy.Set):
        both = isinstance(one, sympy.FiniteSet) and isinstance(other, sympy.FiniteSet)
        return bool(one == other) or (both and matched(list(one), list(other), tolerance))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, sympy.MatrixBase) or isinstance(other, sympy.MatrixBase):
        shaped = getattr(one, "shape", 0) == getattr(other, "shape", 1)
        return shaped and all(equal(a, b, tolerance) for a, b in zip(one, other, strict=True))
    return equal(one, other, tolerance)


def one_of(value: Any, kind: str) -> bool:
    return isinstance(value, tuple) and bool(value) and value[0] == kind


def solution(value: Any, other: Any) -> Any:
    """`x = 5` beside `5`: the name of the unknown was not asked for. `x \\in S` is S, a chain is an interval."""
    if not one_of(value, "relation"):
        return value
    parts = value[1:]
    if len(parts) == 3 and parts[1] == "in":
        return parts[2]
    if len(parts) == 3 and parts[1] == "=" and not one_of(other, "relation") and getattr(parts[0], "is_Symbol", False):
        return parts[2]
    if one_of(other, "interval") or one_of(other, "union") or (one_of(other, "tuple") and len(other) == 3):
        return as_interval(parts) or value
    return value


def as_interval(parts: tuple[Any, ...]) -> Any:
    """`a < x <= b`, `x > a` as intervals."""
    if len(parts) == 5 and {parts[1], parts[3]} <= {"<", "<="}:
        return ("interval", parts[0], parts[4], parts[1] == "<", parts[3] == "<")
    if len(parts) == 5 and {parts[1], parts[3]} <= {">", ">="}:
        return ("interval", parts[4], parts[0], parts[3] == ">", parts[1] == ">")
    if len(parts) == 3 and parts[1] in ("<", "<=", ">", ">="):
        left, sign, right = parts
        if getattr(right, "is_Symbol", False):
            left, right, sign = right, left, {"<": ">", ">": "<", "<=": ">=", ">=": "<="}[sign]
        if sign in ("<", "<="):
            return ("interval", -sympy.oo, right, True, sign == "<")
        return ("interval", right, sympy.oo, sign == ">", True)
    return None


def plain(value: Any, other: Any) -> Any:
    """A list beside a set is a set; an interval of two numbers beside a tuple is a tuple; a row beside a vector."""
    if one_of(value, "list") and isinstance(other, sympy.FiniteSet):
        return sympy.FiniteSet(*(solution(each, None) for each in value[1:]))
    if one_of(value, "tuple") and one_of(other, "interval") and len(value) == 3:
        return ("interval", value[1], value[2], True, True)
    if (one_of(value, "tuple") or one_of(value, "list")) and isinstance(other, sympy.MatrixBase):
        cells = [each for each in value[1:] if not isinstance(each, tuple)]
        return sympy.Matrix(*other.shape, cells) if 1 in other.shape and len(cells) == len(other) else value
    return value


def matched(left: list[Any], right: list[Any], tolerance: float) -> bool:
    """Each of one pairs off with one of the other."""
    for each in left:
        hit = next((place for place, want in enumerate(right) if same(each, want, tolerance, False)), None)
        if hit is None:
            return False
        del right[hit]
    return not right


def same_relation(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """The same equation up to a factor; the same inequality up to a positive one or turned round."""
    if len(one) != 4 or len(other) != 4:
        ours, theirs = as_interval(one[1:]), as_interval(other[1:])
        return ours is not None and theirs is not None and same(ours, theirs, 0.0, True)
    (left, sign, right), (left2, sign2, right2) = one[1:], other[1:]
    if any(isinstance(each, tuple) for each in (left, right, left2, right2)):
        return False
    turned = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
    ours, theirs = left - right, left2 - right2
    if sign in turned and sign in (">", ">="):
        ours, sign = -ours, turned[sign]
    if sign2 in turned and sign2 in (">", ">="):
        theirs, sign2 = -theirs, turned[sign2]
    if sign != sign2 or equal(ours, sympy.S.Zero, 0.0) or equal(theirs, sympy.S.Zero, 0.0):
        return False
    ratio = sympy.simplify(ours / theirs)
    return bool(ratio.is_number and (sign in ("=", "!=") or ratio.is_positive))


def equal(one: Any, other: Any, tolerance: float) -> bool:
    if one == other:
        return True
    if not (isinstance(one, sympy.Expr) and isinstance(other, sympy.Expr)):
        return False
    if one in (sympy.oo, -sympy.oo, sympy.zoo, sympy.nan) or other in (sympy.oo, -sympy.oo, sympy.zoo, sympy.nan):
        return False
    if one.free_symbols != other.free_symbols and sympy.simplify(one - other) != 0:
        return False
    if tolerance and one.is_number and other.is_number:
        return bool(abs(sympy.N(one - other)) <= tolerance * abs(sympy.N(other)))
    if differ_somewhere(one - other):
        return False
    difference = sympy.simplify(one - other)
    return difference == 0 or difference.equals(0) is True


def differ_somewhere(difference: Any) -> bool:
    """Plainly not zero at some point: cheaper than a proof, and most wrong answers end here."""
    names = sorted(difference.free_symbols, key=str)
    for point in POINTS:
        at = {name: point[0] + place * 0.71 for place, name in enumerate(names)}
        value = difference.evalf(15, subs=at)
        if value.is_number and value.is_finite and abs(value) > 1e-6 * max(1, abs(at[names[0]]) if names else 1):
            return True
    return False


def main() -> None:
    memory = int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.set_int_max_str_digits(0)
    spec = importlib.util.spec_from_file_location("latex", sys.argv[1])
    assert spec is not None and spec.loader is not None
    latex = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(latex)
    sys.stdout.write('{"ready": true}\n')
    sys.stdout.flush()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(latex, json.loads(line))) + "\n")
        sys.stdout.flush()


def answer(latex: Any, question: dict[str, Any]) -> dict[str, Any]:
    """The opinion on one pair. SIGVTALRM's default action ends the process when the CPU time is up: even inside C."""
    signal.setitimer(signal.ITIMER_VIRTUAL, question["seconds"])
    try:
        expected = build(latex.parse(question["b"]))
    except Exception as error:  # noqa: BLE001 (sympy raises anything)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return {"unreadable": f"{type(error).__name__}: {error}"}
    try:
        found = same(build(latex.parse(question["a"])), expected, question["tolerance"], question["ordered"])
        return {"same": found}
    except Exception as error:  # noqa: BLE001 (what cannot be read is not equal)
        return {"same": False, "note": f"{type(error).__name__}: {error}"[:200]}
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


if __name__ == "__main__":
    main()
