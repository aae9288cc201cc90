r"""Mathematics as models write it, LaTeX or plain, read into a tree of tuples. Never into Python source.

The grammar: numbers, one-letter and Greek symbols, + - * / ^ !, juxtaposition as a product, functions, \frac, \sqrt,
matrices, lists and tuples, sets, intervals, relations, \cup, \pm. The tree's nodes are `(kind, …)`; leaves are
`("number", digits)` and `("symbol", name)`. Standard library only: the symbolic verdict's worker loads this file.
"""

from __future__ import annotations

import re
from typing import Any

MOST_DEPTH = 60

Node = tuple[Any, ...]

_GREEK = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau upsilon phi "
    "varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega"
)
_FUNCTIONS = "sin cos tan cot sec csc arcsin arccos arctan asin acos atan sinh cosh tanh log ln lg exp sqrt abs max min gcd lcm floor ceil"
GREEK, FUNCTIONS = _GREEK.split(), _FUNCTIONS.split()
RELATIONS = {"=": "=", "<": "<", ">": ">", "<=": "<=", ">=": ">=", "\\le": "<=", "\\leq": "<=", "\\ge": ">=",
             "\\geq": ">=", "\\lt": "<", "\\gt": ">", "\\ne": "!=", "\\neq": "!=", "!=": "!=",
             "\\in": "in", "≤": "<=", "≥": ">=", "≠": "!=", "∈": "in", "\\leqslant": "<=", "\\geqslant": ">=",
             "==": "="}  # fmt: skip
PRODUCTS = {"*": "*", "\\cdot": "*", "\\times": "*", "·": "*", "×": "*", "/": "/", "\\div": "/", "÷": "/"}
NAMES = {"π": "pi", "∞": "oo", "\\infty": "oo", "\\infin": "oo", "\\pi": "pi", "√": "sqrt", "\\mathrm{e}": "e"}
DROPPED = re.compile(
    r"(?<!\\)\\(?:left|right|big|Big|bigg|Bigg|displaystyle|textstyle|limits|quad|qquad|,|;|!|:| )(?![a-zA-Z])"
    r"|~|\\\$|\$|\\%|°|\^\\circ|\^\{\\circ\}"
)
STYLED = re.compile(r"\\(?:mathrm|mathbf|mathit|operatorname|boldsymbol|mathbb|mathcal|overline|vec)\s*\{([^{}]*)\}")
MATRIX = re.compile(r"\\(begin|end)\s*\{(?:[a-zA-Z]?matrix|array)\*?\}(?:\{[lcr| ]*\})?")
TEXT = re.compile(r"\\(?:text|textbf|mbox|textrm)\s*\{\s*([^{}]*?)\s*\}")
TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+\.\d+|\d+|\.\d+)|(?P<command>\\[a-zA-Z]+|\\[{}|&\\])"
    r"|(?P<word>[a-zA-Z]+)|(?P<sign><=|>=|!=|==|\*\*|[-+*/^_!=<>(){}\[\],;:|&·×÷√π∞≤≥≠∈∪±α-ω])|(?P<bad>\S))"
)


class Unreadable(ValueError):
    """The text is not in the grammar."""


def parse(text: str) -> Node:
    """The tree of a whole text; Unreadable when it is anything else."""
    tokens = _tokens(text)
    if not tokens:
        raise Unreadable("nothing is there")
    reader = _Reader(tokens)
    node = reader.listed()
    if reader.at < len(tokens):
        raise Unreadable(f"unexpected {tokens[reader.at]!r}")
    return node


def _tokens(text: str) -> list[str]:
    text = text.replace("−", "-").replace("–", "-").replace("\u00a0", " ").replace("²", "^2").replace("³", "^3")
    text = (
        text.replace("{,}", "").replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac").replace("\\cfrac", "\\frac")
    )
    text = MATRIX.sub(r"\\\1 ", text)
    text = STYLED.sub(r"\1", text)
    text = TEXT.sub(
        lambda m: " , " if m[1] in ("and", "or") else f" {m[1]} " if m[1].isalpha() and len(m[1]) == 1 else " ", text
    )
    text = DROPPED.sub(" ", text).replace("\\{", " \\{ ").replace("\\}", " \\} ")
    text = re.sub(r"\b(?:and|or)\b", " , ", text)
    tokens = []
    for match in TOKEN.finditer(text):
        if match["bad"]:
            raise Unreadable(f"unexpected {match['bad']!r}")
        if match["word"]:
            tokens += _words(match["word"])
        else:
            token = match[0].strip()
            tokens.append("^" if token == "**" else NAMES.get(token, token))
    return tokens


def _words(word: str) -> list[str]:
    """A function, a name that stands for one thing, or letters that are multiplied."""
    if word in FUNCTIONS or word in ("pi", "oo", "inf", "infinity", "U", "frac") or word in GREEK:
        return [{"inf": "oo", "infinity": "oo"}.get(word, word)]
    for name in sorted((*FUNCTIONS, "pi"), key=len, reverse=True):
        if name in word and len(word) > len(name) and len(word) <= 12:
            before, _, after = word.partition(name)
            if len(before) <= 2 and len(after) <= 2:
                return [*before, name, *after]
    if len(word) > 4:
        raise Unreadable(f"the word {word!r}")
    return list(word)


class _Reader:
    """Recursive descent over the tokens."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.at, self.depth = tokens, 0, 0

    def peek(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        token = self.peek()
        if wanted and token not in wanted:
            raise Unreadable(f"{wanted[0]!r} is missing" + (f" before {token!r}" if token else " at the end"))
        self.at += 1
        return token

    def listed(self) -> Node:
        """`1, 2, 3` without brackets is a list; one thing is itself."""
        items = [self.relation()]
        while self.peek() in (",", ";"):
            self.take()
            if self.peek():
                items.append(self.relation())
        return items[0] if len(items) == 1 else ("list", *items)

    def relation(self) -> Node:
        left = self.union()
        parts: list[Any] = [left]
        while self.peek() in RELATIONS:
            parts.append(RELATIONS[self.take()])
            parts.append(self.union())
        return left if len(parts) == 1 else ("relation", *parts)

    def union(self) -> Node:
        sets = [self.sum()]
        while self.peek() in ("\\cup", "∪", "U"):
            self.take()
            sets.append(self.sum())
        return sets[0] if len(sets) == 1 else ("union", *sets)

    def sum(self) -> Node:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise Unreadable("nested too deeply")
        node = self.term()
        while self.peek() in ("+", "-", "\\pm", "±"):
            sign = self.take()
            node = ({"+": "add", "-": "subtract"}.get(sign, "plusminus"), node, self.term())
        self.depth -= 1
        return node

    def term(self) -> Node:
        if self.peek() in ("-", "+"):
            return ("negate", self.term()) if self.take() == "-" else self.term()
        if self.peek() in ("\\pm", "±"):
            self.take()
            return ("plusminus", ("number", "0"), self.term())
        node = self.power()
        while True:
            token = self.peek()
            if token in PRODUCTS:
                kind = "multiply" if PRODUCTS[self.take()] == "*" else "divide"
                node = (kind, node, self.signed_power())
            elif self.starts_factor(token):
                mixed = node[0] == "number" and token == "\\frac" and "." not in node[1]
                node = ("add" if mixed else "multiply", node, self.power())
            else:
                return node

    def signed_power(self) -> Node:
        if self.peek() in ("-", "+"):
            return ("negate", self.signed_power()) if self.take() == "-" else self.signed_power()
        return self.power()

    def starts_factor(self, token: str) -> bool:
        if not token or token in (
            ")",
            "]",
            "}",
            "\\}",
            ",",
            ";",
            "|",
            "&",
            "\\\\",
            "\\cup",
            "U",
            ":",
            "\\end",
            "\\rvert",
            "\\rfloor",
            "\\rceil",
        ):
            return False
        return (
            token[0].isalnum()
            or token in ("(", "{", "√")
            or (token[0] == "\\" and token not in RELATIONS and token not in PRODUCTS and token != "\\pm")
        )

    def power(self) -> Node:
        base = self.atom()
        while self.peek() == "!":
            self.take()
            base = ("factorial", base)
        if self.peek() == "_":
            self.take()
            base = ("symbol", f"{base[-1]}_{self.group()!s}")
        if self.peek() == "^":
            self.take()
            return ("power", base, self.exponent())
        return base

    def exponent(self) -> Node:
        if self.peek() == "{":
            return self.group()
        if self.peek() in ("-", "+"):
            return ("negate", self.exponent()) if self.take() == "-" else self.exponent()
        return self.power()

    def group(self) -> Node:
        """`{…}`, or a single digit or letter as TeX takes it."""
        if self.peek() == "{":
            self.take()
            node = self.listed()
            self.take("}")
            return node
        token = self.peek()
        if token.isdigit() and len(token) > 1:
            self.tokens[self.at : self.at + 1] = [token[0], token[1:]]
        return self.atom()

    def atom(self) -> Node:
        token = self.take()
        if token[:1].isdigit() or token[:1] == ".":
            return ("number", token.replace(",", ""))
        name = token.removeprefix("\\")
        if name in FUNCTIONS:
            return self.function(name)
        if name == "frac":
            return ("divide", self.group(), self.group())
        if name in ("binom", "dbinom"):
            return ("call", "binomial", self.group(), self.group())
        if token == "\\begin":
            return self.matrix()
        if token in ("(", "[", "{", "\\{", "\\lvert", "|", "\\lfloor", "\\lceil"):
            return self.bracketed(token)
        if name in GREEK or name == "oo" or (len(name) == 1 and name.isalpha()) or name == "pi":
            return ("symbol", name)
        if name in ("emptyset", "varnothing"):
            return ("set",)
        raise Unreadable(f"unexpected {token!r}" if token else "something is missing at the end")

    def function(self, name: str) -> Node:
        if name == "sqrt":
            index: Node = ("number", "2")
            if self.peek() == "[":
                self.take()
                index = self.sum()
                self.take("]")
            return ("root", self.group() if self.peek() != "(" else self.atom(), index)
        base = power = None
        if self.peek() == "_":
            self.take()
            base = self.group()
        if self.peek() == "^":
            self.take()
            power = self.exponent()
        argument = self.arguments()
        node: Node = ("call", name, *argument, *((base,) if base else ()))
        return ("power", node, power) if power else node

    def arguments(self) -> tuple[Node, ...]:
        if self.peek() in ("(", "{"):
            close = {"(": ")", "{": "}"}[self.take()]
            node = self.listed()
            self.take(close)
            return node[1:] if node[0] == "list" else (node,)
        factors = self.power()
        while self.starts_factor(self.peek()) and self.peek().removeprefix("\\") not in FUNCTIONS:
            factors = ("multiply", factors, self.power())
        return (factors,)

    def bracketed(self, opened: str) -> Node:
        """Grouping, absolute value, tuple, interval, list or set, by brackets and commas."""
        closing = {"(": (")", "]"), "[": ("]", ")"), "{": ("}",), "\\{": ("\\}",), "|": ("|",), "\\lvert": ("\\rvert",),
                   "\\lfloor": ("\\rfloor",), "\\lceil": ("\\rceil",)}[opened]  # fmt: skip
        if self.peek() in closing:
            self.take()
            return ("set",) if "{" in opened else ("tuple",)
        node = self.listed()
        closed = self.take(*closing)
        items = node[1:] if node[0] == "list" else (node,)
        if opened in ("|", "\\lvert"):
            return ("call", "abs", node)
        if opened in ("\\lfloor", "\\lceil"):
            return ("call", "floor" if opened == "\\lfloor" else "ceil", node)
        if opened == "\\{":
            return ("set", *items)
        if opened == "{":
            return node if len(items) == 1 else ("set", *items)
        if (opened, closed) == ("(", ")"):
            return node if len(items) == 1 else ("tuple", *items)
        if len(items) == 2:
            return ("interval", opened, items[0], items[1], closed)
        if (opened, closed) == ("[", "]"):
            return node if len(items) == 1 else ("tuple", *items)
        raise Unreadable("brackets that do not match")

    def matrix(self) -> Node:
        rows: list[list[Node]] = [[]]
        while self.peek() != "\\end":
            if self.peek() == "&":
                self.take()
            elif self.peek() == "\\\\":
                self.take()
                rows.append([])
            else:
                rows[-1].append(self.relation())
        self.take("\\end")
        return ("matrix", *(tuple(row) for row in rows if row))
