"""torch's abbreviations of dtypes: ``f32``, ``bf16``, ``i64``, ``b8``."""

from __future__ import annotations

import difflib

DTYPES = {
    "f32": "float32",
    "f64": "float64",
    "f16": "float16",
    "bf16": "bfloat16",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "b8": "bool",
    "c32": "complex32",
    "c64": "complex64",
    "c128": "complex128",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2": "float8_e5m2",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0fnu": "float8_e8m0fnu",
}
"""The abbreviations of `torch.utils._dtype_abbrs` for dtypes that hold numbers -> the attribute of ``torch``."""

CASTABLE = tuple(short for short in DTYPES if short[0] in "fc" or short == "bf16")
"""The dtypes that a model can be cast to."""

_LONG = {name: short for short, name in DTYPES.items()} | {
    "float": "f32",
    "double": "f64",
    "half": "f16",
    "long": "i64",
    "int": "i64",
    "short": "i16",
    "cfloat": "c64",
    "cdouble": "c128",
    "FloatTensor": "f32",
    "LongTensor": "i64",
}


def nearest_dtype(word: str) -> str:
    """Return the abbreviation of a dtype's long name, or the nearest one; empty if none is near."""
    name = word.rpartition(".")[2]
    close = difflib.get_close_matches(name, DTYPES, 1)
    return name if name in DTYPES else _LONG.get(name) or (close[0] if close else "")
