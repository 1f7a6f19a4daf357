"""Units of measure: canonical symbols, their dimension, and factors to the dimension's base unit."""

from __future__ import annotations

from typing import Final

FACTORS: Final[dict[str, tuple[str, float]]] = {
    "s": ("time", 1.0), "ms": ("time", 1e-3), "µs": ("time", 1e-6), "ns": ("time", 1e-9),
    "min": ("time", 60.0), "h": ("time", 3600.0), "d": ("time", 86400.0), "wk": ("time", 604800.0),
    "mo": ("months", 1.0), "yr": ("months", 12.0),
    "mm": ("length", 1e-3), "cm": ("length", 1e-2), "m": ("length", 1.0), "km": ("length", 1e3),
    "in": ("length", 0.0254), "ft": ("length", 0.3048), "mi": ("length", 1609.344),
    "µg": ("mass", 1e-6), "mg": ("mass", 1e-3), "g": ("mass", 1.0), "kg": ("mass", 1e3), "t": ("mass", 1e6),
    "lb": ("mass", 453.59237), "oz": ("mass", 28.349523125),
    "ml": ("volume", 1e-3), "cl": ("volume", 1e-2), "l": ("volume", 1.0),
    "B": ("data", 1.0), "KB": ("data", 1e3), "MB": ("data", 1e6), "GB": ("data", 1e9), "TB": ("data", 1e12),
    "PB": ("data", 1e15),
    "W": ("power", 1.0), "kW": ("power", 1e3), "MW": ("power", 1e6), "GW": ("power", 1e9),
    "Wh": ("energy", 1.0), "kWh": ("energy", 1e3), "MWh": ("energy", 1e6),
    "V": ("voltage", 1.0), "A": ("current", 1.0), "Hz": ("frequency", 1.0), "kHz": ("frequency", 1e3),
    "MHz": ("frequency", 1e6), "GHz": ("frequency", 1e9),
    "km/h": ("speed", 1.0), "mph": ("speed", 1.609344), "m/s": ("speed", 3.6),
    "°C": ("celsius", 1.0), "°F": ("fahrenheit", 1.0), "deg": ("degrees", 1.0),
    "%": ("percent", 1.0), "pp": ("points", 1.0),
    "m²": ("area", 1.0), "km²": ("area", 1e6), "ha": ("area", 1e4),
}  # fmt: skip
"""Canonical symbol -> (dimension, factor to its base unit). Months and years form their own dimension."""

CURRENCIES: Final[dict[str, str]] = {
    "$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₴": "UAH", "₽": "RUB", "zł": "PLN", "US$": "USD",
    "USD": "USD", "EUR": "EUR", "GBP": "GBP", "JPY": "JPY", "UAH": "UAH", "RUB": "RUB", "PLN": "PLN", "CHF": "CHF",
    "SEK": "SEK", "NOK": "NOK", "DKK": "DKK", "CZK": "CZK", "HUF": "HUF", "CAD": "CAD", "AUD": "AUD",
    "INR": "INR", "CNY": "CNY",
}  # fmt: skip
"""Sign or code -> ISO 4217 code."""

_CASED: Final = ("MW", "mW", "A", "V", "B", "m", "t", "l", "s", "h", "d", "g", "W", "in")
SYMBOLS: Final[dict[str, str]] = {symbol.lower(): symbol for symbol in FACTORS if symbol not in _CASED} | {
    "kb": "KB", "kib": "KB", "mib": "MB", "gib": "GB", "tib": "TB", "gb": "GB", "mb": "MB", "tb": "TB", "lbs": "lb",
    "°": "deg", "kmh": "km/h", "m2": "m²", "km2": "km²", "мг": "mg", "г": "g", "кг": "kg", "км": "km", "км/ч": "km/h",
    "км/год": "km/h", "см": "cm", "мм": "mm", "мл": "ml", "л": "l", "мс": "ms", "гб": "GB", "мб": "MB",
    "тб": "TB", "квт": "kW",
}  # fmt: skip
"""Lower-case symbol as written -> canonical. One-letter symbols are read with their case, see `EXACT`."""

EXACT: Final[frozenset[str]] = frozenset({"m", "t", "l", "s", "h", "d", "g", "W", "V", "A", "B", "L", "MW"})


def dimension(unit: str) -> str:
    """Return the dimension of a canonical unit; the unit itself for currencies, `` for none."""
    return FACTORS[unit][0] if unit in FACTORS else unit


def factor(unit: str) -> float:
    """Return the factor to the base unit of the dimension; 1 for unknown units."""
    return FACTORS[unit][1] if unit in FACTORS else 1.0
