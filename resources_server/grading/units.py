"""What may stand beside a number: currencies, scale words and the units that convert into each other."""

from __future__ import annotations

from fractions import Fraction

from resources_server.grading.forms import plain

CURRENCIES = {
    "$": "USD", "us$": "USD", "usd": "USD", "dollar": "USD", "dollars": "USD",
    "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR",
    "£": "GBP", "gbp": "GBP", "pound": "GBP", "pounds": "GBP",
    "¥": "JPY", "jpy": "JPY", "yen": "JPY",
    "₹": "INR", "inr": "INR", "rs": "INR", "rupee": "INR", "rupees": "INR",
    "chf": "CHF", "cny": "CNY", "yuan": "CNY", "krw": "KRW", "₩": "KRW", "won": "KRW", "₽": "RUB", "rub": "RUB",
    "aud": "AUD", "cad": "CAD", "brl": "BRL", "sek": "SEK", "nok": "NOK", "dkk": "DKK", "pln": "PLN", "zł": "PLN",
}  # fmt: skip
SCALES = {
    "hundred": 2, "thousand": 3, "k": 3, "million": 6, "millions": 6, "mn": 6, "mio": 6,
    "billion": 9, "billions": 9, "bn": 9, "trillion": 12, "trillions": 12,
}  # fmt: skip
UNITS: dict[str, tuple[str, Fraction]] = {}  # spelling -> (what it measures, how many of the base unit)


def _define(kind: str, base: dict[str, str | int]) -> None:
    for spellings, factor in base.items():
        for spelling in spellings.split():
            UNITS[spelling] = (kind, Fraction(factor))


_define("length", {
    "mm millimeter millimetre millimeters millimetres": "0.001", "cm centimeter centimetre centimeters centimetres":
    "0.01", "m meter metre meters metres": 1, "km kilometer kilometre kilometers kilometres": 1000,
    "in inch inches": "0.0254", "ft foot feet": "0.3048", "yd yard yards": "0.9144", "mi mile miles": "1609.344",
})  # fmt: skip
_define("mass", {
    "mg milligram milligrams": "0.000001", "g gram grams": "0.001", "kg kilogram kilograms kilo kilos": 1,
    "t tonne tonnes": 1000, "lb lbs": "0.45359237", "oz ounce ounces": "0.028349523125",
})  # fmt: skip
_define("time", {
    "ms millisecond milliseconds": "0.001", "s sec secs second seconds": 1, "min mins minute minutes": 60,
    "h hr hrs hour hours": 3600, "d day days": 86400, "week weeks": 604800,
})  # fmt: skip
_define("volume", {"ml milliliter millilitre milliliters millilitres": "0.001", "l liter litre liters litres": 1})
_define("data", {"byte bytes": 1, "kb": 1000, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 1024, "mib": 2**20,
                 "gib": 2**30})  # fmt: skip


def canonical_unit(unit: str) -> str:
    """One spelling for each unit: `kilometres` and `km` are the same, `€` and `euros` too."""
    unit = plain(unit).casefold().strip(" .")
    if unit in CURRENCIES:
        return CURRENCIES[unit]
    known = UNITS.get(unit)
    if known is None:
        return unit
    return next(spelling for spelling, meaning in UNITS.items() if meaning == known)
