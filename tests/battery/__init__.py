"""The battery: small models, each with a trait that has made some tool fail or lie, and the graph that is right for it.

A graph is written as what runs, in order, each with what it takes: ``x; fc(x); add(fc, x); output(add)``.
"""

from __future__ import annotations

from battery import blocks, inputs, modules, opaque, tensors, tracing, writes
from battery.case import CASES, Case

__all__ = ["CASES", "Case", "blocks", "inputs", "modules", "opaque", "tensors", "tracing", "writes"]
