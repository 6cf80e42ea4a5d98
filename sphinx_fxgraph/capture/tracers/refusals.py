"""Say in plain words why torch.fx or torch.export cannot follow a model."""

from __future__ import annotations

import re
from collections import Counter

from torch.fx.proxy import TraceError

from sphinx_fxgraph.capture.errors import cut, message_of, said


def fx_refusal(error: BaseException) -> str:
    """Return why torch.fx cannot follow a model; its own words need no name of an exception."""
    text = said(error)
    for pattern, sentence in () if isinstance(error, TraceError) else _FX_SENTENCES:
        if found := re.search(pattern, text):
            return f"torch.fx: {found.expand(sentence)}"
    name = "" if isinstance(error, TraceError | NameError | NotImplementedError) else f"{type(error).__name__}: "
    return f"torch.fx: {name}{text}"


_FX_SENTENCES: tuple[tuple[str, str], ...] = (
    (r"__cuda_array_interface__` must be a dict", "a traced value is copied into a new tensor"),
    (r"expected np\.ndarray \(got Proxy\)", "NumPy takes a traced value"),
    (r"^(\w+)\(\): argument '(\w+)'.* (?:not|type) \w*(?:Proxy|Attribute)\b", r"\1 takes a traced value as \2"),
    (r"^(\w+)\(\) received an invalid combination of arguments .*Proxy", r"\1 takes a traced value"),
    (r"'Proxy' object cannot be interpreted as an integer", "a traced value is used as a plain integer"),
    (r"must be real number, not Proxy", "a traced value is used as a plain number"),
    (r"\b(?:Proxy\(|Proxy$|got Proxy|fx\.proxy\.)", "a traced value stands where only a tensor or a number may"),
)
"""What Python and torch say of the values that torch.fx traces with, and what that means."""


_EXPORT_SENTENCES: tuple[tuple[str, str], ...] = (
    (r"data-dependent expression (.+?) \(unhinted", "what runs here depends on the values in a tensor ({})"),
    (r"Found <class '([^']+)'> in output, which is not a known type", "the output holds an object of {}"),
    (r"input type.*?<class '([^']+)'>", "the inputs hold an object of {}"),
)
"""What torch.export says of its own limits, and what we say."""


def export_refusal(error: BaseException) -> str:
    """Return why a model cannot be exported, in one sentence."""
    text = message_of(error).split("\n\nThe error above occurred when calling torch.export")[0]
    for pattern, sentence in _EXPORT_SENTENCES:
        if found := re.search(pattern, text, re.DOTALL):
            what = found[1].rpartition("<locals>.")[2]
            subject = _plain_expression(what) if "values" in sentence else f"{what}, a type it does not know"
            reason = sentence.format(subject)
            return f"torch.export refuses: {reason}"
    first = re.split(r"\n\s*\n|\nCaused by:", text.strip())[0]
    if type(error).__module__ != "builtins" or isinstance(error, RuntimeError):
        first = Symbols().text(first)
    return cut(first)


def _plain_expression(expression: str) -> str:
    """``u0 == 1`` for ``Eq(u3, 1)``."""
    expression = Symbols().text(expression)
    return re.sub(r"^(Eq|Ne)\((.+), (.+)\)$", lambda e: f"{e[2]} {'==' if e[1] == 'Eq' else '!='} {e[3]}", expression)


class Symbols:
    """Calls the symbols of a program ``s0``, ``s1``, ... in order of appearance; torch numbers them by hashes."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def dim(self, dim: int | str) -> int | str:
        """A dimension."""
        if isinstance(dim, int):
            return dim
        return int(dim) if dim.isdigit() else self.text(dim)

    def text(self, text: str) -> str:
        """A text with symbols in it; ``s`` are sizes of the inputs, ``u`` sizes that depend on values."""
        plain = re.sub(r"\b(s|u|zf|zuf)\d+\b", self._name, text)
        while (simpler := re.sub(r"\(\(([^()]*)\)\)", r"(\1)", plain)) != plain:
            plain = simpler
        return re.sub(r"(^|[\[ ])\(([^(),]+)\)(?=$|[\],])", r"\1\2", plain)

    def _name(self, found: re.Match[str]) -> str:
        old, kind = found[0], "s" if found[1] == "s" else "u"
        if old not in self._names:
            self._names[old] = f"{kind}{self._counts[kind]}"
            self._counts[kind] += 1
        return self._names[old]
