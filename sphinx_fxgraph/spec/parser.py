"""The grammar of target and inputs: a small part of Python's expressions, read with `ast` and never evaluated.

A target is a dotted name or a call; inputs are written like the arguments of a call. Two spellings are ours: a tensor
is a dtype with a shape, ``f32[1, 3, 224, 224]`` (``f32[]`` has no dimension), and ``pkg.mod:Class.make`` says where the
module ends. Whatever is wrong is one `SpecError` that names the place and shows a right example.
"""

from __future__ import annotations

import ast
import builtins
import functools
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sphinx_fxgraph.dtypes import DTYPES, nearest_dtype
from sphinx_fxgraph.errors import SpecError
from sphinx_fxgraph.spec.syntax import AUTO, Arguments, Call, Dict, List, Literal, Name, Tensor, Tuple, Value, bounds

EXAMPLES = {"target": "torchvision.models.resnet18(weights=None)", "inputs": "f32[1, 3, 224, 224]"}
"""A right example of each option."""


# Not `tokenize`: what it does with torn text differs between Python 3.11 and 3.12.
_OPAQUE = re.compile(
    r"""'{3}.*?'{3} | "{3}.*?"{3} | '(?:\\.|[^'\\\n])*' | "(?:\\.|[^"\\\n])*" | \#[^\n]*""", re.VERBOSE | re.DOTALL
)
_PAIRS = {"(": ")", "[": "]", "{": "}"}


class Located:
    """One text: its brackets checked, made into Python, and parsed.

    Args:
        option: what the text was given as; names the place in messages.
        text: what the author wrote.
        opening: what stands before the text to make it one expression, up to a bracket that is closed behind it.

    Raises:
        SpecError: it does not parse.
    """

    def __init__(self, option: str, text: str, opening: str) -> None:
        self.option = option
        self.text = text.replace("\r\n", "\n").replace("\r", "\n")
        self.opening = opening
        self.modules: dict[int, int] = {}
        """Where a name with a ``:`` starts -> how many names stand before the ``:``."""
        self.inserted: list[int] = []
        """Before which characters ``()`` was put in."""
        self.code = f"{opening}{self._as_python()}\n)"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "invalid decimal literal", without a place
                self.tree = ast.parse(self.code, mode="eval").body
        except SyntaxError as error:
            raise self.error(_plainly(error.msg), self._offset(error.lineno or 1, (error.offset or 1) - 1)) from None
        except (ValueError, RecursionError, MemoryError):
            raise self.error("this is nested too deeply or holds a character that is none", 0) from None

    # -- places

    def error(self, what: str, place: ast.AST | int, example: str = "") -> SpecError:
        """The error at a node or at an offset in the text."""
        offset = place if isinstance(place, int) else self.place(place)
        before = self.text[:offset]
        line = f"line {before.count(chr(10)) + 1}, " if "\n" in self.text.strip() else ""
        column = offset - before.rfind("\n")
        return SpecError(
            f"{self.option}, {line}column {column}: {what}; for example {example or EXAMPLES[self.option]}"
        )

    def place(self, node: ast.AST) -> int:
        """Where a node starts in the text."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        return self._offset(line, len(self.code.split("\n")[line - 1].encode()[:column].decode()))

    def _offset(self, line: int, column: int) -> int:
        """Where in the text a line (from 1) and column (from 0, in characters) of the code are."""
        offset = sum(len(each) + 1 for each in self.code.split("\n")[: line - 1]) + column - len(self.opening)
        for before in self.inserted:
            if before < offset:
                offset = max(offset - 2, before)
        return min(max(offset, 0), len(self.text))

    # -- text to Python

    def _as_python(self) -> str:
        """The text with ``name[]`` as ``name[()]`` and ``mod:name`` as ``mod.name``; checks the brackets on the way."""
        bare = _OPAQUE.sub(lambda match: "~" * len(match.group()), self.text)
        if open_quote := re.search("['\"]", bare):
            raise self.error("this string is never closed", open_quote.start())
        code = list(self.text)
        for colon in self._module_colons(bare):
            code[colon] = "."
        self.inserted = [match.end() for match in re.finditer(r"\w\s*\[\s*(?=\])", bare)]
        for before in self.inserted:
            code[before] = "()" + code[before]
        return "".join(code)

    def _module_colons(self, bare: str) -> Iterator[int]:
        """Where a ``:`` ends a module; every other one stands behind a dict's key."""
        stack: list[int] = []
        keyed: set[int] = set()  # the dicts whose key has passed
        for match in re.finditer(r"[()\[\]{},]|:(?!=)", bare):
            sign, at = match.group(), match.start()
            if sign in _PAIRS:
                stack.append(at)
            elif sign in _PAIRS.values():
                if not stack:
                    raise self.error(f"'{sign}' closes nothing", at)
                opened = stack.pop()
                if _PAIRS[bare[opened]] != sign:
                    raise self.error(f"'{bare[opened]}' is closed by '{sign}'", opened)
            elif sign == ",":
                keyed.difference_update(stack[-1:])
            elif stack and bare[stack[-1]] == "{" and stack[-1] not in keyed:
                keyed.add(stack[-1])
            else:
                yield self._module_colon(bare, at)
        if stack:
            raise self.error(f"'{bare[stack[-1]]}' is never closed", stack[-1])

    def _module_colon(self, bare: str, at: int) -> int:
        """Remember the module in front of a ``:``."""
        if re.search(r"\blambda\b[^:]*$", bare[:at]):
            raise self.error("a lambda cannot stand here, name a function", at)
        if re.match(r"\s*\w+\s*\[", bare[at + 1 :]):
            raise self.error("a keyword is followed by '=', not by ':'", at, "x=f32[2, 5]")
        module = re.search(r"[^\W\d][\w.]*$", bare[:at])
        if not module or not re.match(r"[^\W\d]", bare[at + 1 :]) or bare[:at].endswith(":" + module.group()):
            raise self.error(
                "a ':' stands between one module and one name, without spaces", at, "pkg.module:Class.make()"
            )
        if module.group().endswith(".py"):
            raise self.error("name the module, not its file", module.start(), "pkg.module:Class")
        self.modules[module.start()] = module.group().count(".") + 1
        return at


def _plainly(message: str) -> str:
    """Python's message about the syntax, without what it says of other things one might have meant."""
    if "positional argument follows keyword argument" in message:
        return "a value without a keyword stands behind one with a keyword"
    return message[:1].lower() + message[1:]


@functools.lru_cache(4096)
def parse_target(text: str) -> Name | Call:
    """The expression that makes the model.

    Raises:
        SpecError: it is not a dotted name or a call of one.
    """
    if not text.strip():
        raise SpecError(f"target: missing; name the model, for example {EXAMPLES['target']}")
    reader = _Reader("target", text, "(")
    return reader.target(reader.tree)


@functools.lru_cache(4096)
def parse_inputs(text: str) -> Arguments | Call | Name:
    """Parse the inputs of ``forward``.

    A lone call stands for what it returns, `AUTO` for the model's own example inputs.

    Only integers are the shape of one ``f32`` tensor, only tuples of integers the shapes of that many.

    Raises:
        SpecError: it cannot stand between the brackets of a call.
    """
    if text.strip() == str(AUTO):
        return AUTO
    reader = _Reader("inputs", text, "f(")
    tree = reader.tree
    if not isinstance(tree, ast.Call):  # the brackets are balanced, so this takes some trying
        raise reader.error("these are no arguments of one call", tree)
    arguments = reader.shorthand(tree) or reader.arguments(tree)
    if len(arguments.args) == 1 and not arguments.kwargs and isinstance(arguments.args[0], Call):
        return arguments.args[0]
    return arguments


# What a value cannot be, and what the author can do about it.
_REFUSED: dict[type[ast.expr], str] = {
    ast.BinOp: "arithmetic cannot stand here, write its result (and a module as pkg.module, not as a path)",
    ast.JoinedStr: "an f-string cannot stand here, write the string itself",
    ast.Lambda: "a lambda cannot stand here, name a function",
    ast.Starred: "'*' cannot stand here, write the values out",
    ast.Set: "a set cannot stand here, write a list",
    ast.ListComp: "a comprehension cannot stand here, write the values out",
    ast.DictComp: "a comprehension cannot stand here, write the values out",
    ast.SetComp: "a comprehension cannot stand here, write the values out",
    ast.GeneratorExp: "a comprehension cannot stand here, write the values out",
    ast.NamedExpr: "':=' cannot stand here",
}


class _Reader(Located):
    """Reads the tree of one text."""

    def target(self, node: ast.expr) -> Name | Call:
        """The whole text as a target."""
        if isinstance(node, ast.Call | ast.Name | ast.Attribute):
            value = self.value(node, called=True)
            assert isinstance(value, Name | Call)  # narrows the type
            return value
        if isinstance(node, ast.Tuple):
            raise self.error("a target is one expression", node.elts[1] if len(node.elts) > 1 else node)
        if isinstance(node, ast.Subscript):
            raise self.error("a target has no subscript", node)
        raise self.error(_REFUSED.get(type(node), "a target is a dotted name or a call of one"), node)

    def arguments(self, call: ast.Call) -> Arguments:
        """Parse the arguments of a call."""
        kwargs: dict[str, Value] = {}
        for keyword in call.keywords:
            if keyword.arg is None:
                raise self.error("'**' cannot stand here, write the keywords out", keyword, "x=f32[2, 5]")
            if keyword.arg in kwargs:
                raise self.error(f"{keyword.arg}= is given twice", keyword, "x=f32[2, 5], y=f32[2, 5]")
            kwargs[keyword.arg] = self.value(keyword.value)
        return Arguments(tuple(map(self.value, call.args)), tuple(kwargs.items()))

    def shorthand(self, call: ast.Call) -> Arguments | None:
        """Shapes alone, as ``f32`` tensors; None where something else stands among them."""
        if call.keywords or not call.args or not all(map(_only_integers, call.args)):
            return None
        if not any(isinstance(node, ast.Tuple) for node in call.args):
            return Arguments((Tensor("f32", self.shape(call.args)),))
        shapes = []
        for node in call.args:
            if not isinstance(node, ast.Tuple) or any(isinstance(each, ast.Tuple) for each in node.elts):
                what = "shapes alone are integers (one tensor) or tuples of integers (one tensor each)"
                raise self.error(what, node, "f32[1, 3], 5 or (f32[1, 3], f32[1, 2])")
            shapes.append(Tensor("f32", self.shape(node.elts)))
        return Arguments(tuple(shapes))

    def value(self, node: ast.expr, called: bool = False) -> Value:
        """Any value."""
        match node:
            case ast.Constant(value=None | bool() | int() | float() | complex() | str() | bytes() as value):
                return Literal(value)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=ast.Constant(value=int() | float() as number)):
                return Literal(-number if isinstance(sign, ast.USub) else number)
            case ast.List(elts=items):
                return List(tuple(map(self.value, items)))
            case ast.Tuple(elts=items):
                return Tuple(tuple(map(self.value, items)))
            case ast.Dict(keys=keys, values=values):
                return Dict(
                    tuple((self.key(key, node), self.value(value)) for key, value in zip(keys, values, strict=True))
                )
            case ast.Call(func=ast.Name(id=dtype)) if dtype in DTYPES:
                raise self.error(f"the shape of {dtype} stands in square brackets", node, f"{dtype}[1, 3]")
            case ast.Call(func=function):
                return Call(self.name(function, called=True), self.arguments(node))
            case ast.Name() | ast.Attribute():
                return self.name(node, called)
            case ast.Subscript():
                return self.tensor(node)
            case ast.Compare():
                return self.tensor_in_range(node)
        raise self.error(_REFUSED.get(type(node), "this is no value"), node)

    def key(self, node: ast.expr | None, whole: ast.Dict) -> Literal:
        """A key of a dict."""
        value = self.value(node) if node else None
        if not isinstance(value, Literal):
            raise self.error(
                "a dict's keys are strings or numbers", node or whole, '{"pixel_values": f32[1, 3, 224, 224]}'
            )
        return value

    def name(self, node: ast.expr, called: bool) -> Name:
        """A dotted name; one that is not ``called`` and has no dot is most likely a slip."""
        names: list[str] = []
        inner = node
        while isinstance(inner, ast.Attribute):
            names.insert(0, inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Call):
            what = f"nothing can be taken from the result of a call; use ':submodule: {'.'.join(names)}' or a function"
            raise self.error(what if names else "the result of a call cannot be called; use a function", node)
        if not isinstance(inner, ast.Name):
            raise self.error("a name starts with a package", node)
        names.insert(0, inner.id)
        module = self.modules.get(self.place(inner))
        if module is not None:
            return Name(".".join(names[:module]), ".".join(names[module:]))
        if len(names) == 1 and not hasattr(builtins, names[0]):
            self._refuse_bare(names[0], inner, called)
        return Name(None, ".".join(names))

    def _refuse_bare(self, name: str, node: ast.expr, called: bool) -> None:
        if name in DTYPES:
            raise self.error(f"{name} has no shape", node, f"{name}[1, 3], or {name}[] for no dimension")
        plain = {"true": "True", "false": "False", "none": "None", "null": "None"}.get(name.lower())
        if plain:
            raise self.error(f"{name!r} is written {plain}", node)
        raise self.error(
            f"{name!r} names no package", node, f"pkg.module.{name}" if called else f'"{name}", pkg.module.{name}'
        )

    def tensor(self, node: ast.Subscript) -> Tensor:
        """``f32[1, 3]``."""
        name = ast.unparse(node.value)
        dims = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(node.value, ast.Name) and name in DTYPES:
            return Tensor(name, self.shape(dims))
        short = nearest_dtype(name)
        if isinstance(node.value, ast.Name) or (isinstance(node.value, ast.Attribute) and short):
            raise self.error(f"{name!r} is no dtype", node, f"{short or 'f32'}[1, 3] (dtypes are {_SOME_DTYPES} ...)")
        raise self.error("only a dtype can have a subscript", node)

    def shape(self, dims: Sequence[ast.expr]) -> tuple[int, ...]:
        """The dimensions of a tensor."""
        shape = []
        for node in dims:
            value = node.value if isinstance(node, ast.Constant) else None
            if type(value) is not int:
                written = ast.get_source_segment(self.code, node) or "this"
                raise self.error(f"a dimension is a whole number from 0 up, not {written!r}", node)
            shape.append(value)
        return tuple(shape)

    def tensor_in_range(self, node: ast.Compare) -> Tensor:
        """``i64[1, 128] < 30522`` and ``5 <= i64[3] < 9``."""
        terms = [node.left, *node.comparators]
        tensors = [index for index, term in enumerate(terms) if isinstance(term, ast.Subscript)]
        example = "i64[1, 128] < 30522 or 5 <= i64[3] < 9"
        if tensors not in ([0], [1]) or len(terms) > 3 or (len(terms) == 3 and tensors == [0]):
            raise self.error("a comparison gives one tensor its range of values", node, example)
        at = tensors[0]
        subscript = terms[at]
        assert isinstance(subscript, ast.Subscript)  # narrows the type
        tensor = self.tensor(subscript)
        whole = tensor.dtype[0] in "iu"
        low: float | None = None
        high: float | None = None
        for index, op in enumerate(node.ops):
            limit = self.limit(terms[index + 1 if index == at else index], whole, example)
            upper = isinstance(op, ast.Lt | ast.LtE) == (index == at)
            closed = isinstance(op, ast.LtE | ast.GtE)
            if not isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) or (high if upper else low) is not None:
                raise self.error("a range has one lower and one upper limit", node, example)
            if upper:
                high = limit + (whole and closed)
            else:
                low = limit + (whole and not closed)
        if high is None:
            raise self.error("a range needs its upper limit", node, example)
        low = (0 if whole else 0.0) if low is None else low
        if tensor.dtype[0] in "bc" and tensor.dtype != "bf16":
            raise self.error(f"{tensor.dtype} has no range of values", node, example)
        if not low < high:
            raise self.error(f"no value lies between {low} and {high}", node, example)
        least, most = bounds(tensor.dtype) if whole else (low, high)
        if low < least or high > most:
            raise self.error(f"{tensor.dtype} holds whole numbers from {least} to {most - 1}", node, "u8[3] < 256")
        return replace(tensor, low=low, high=high)

    def limit(self, node: ast.expr, whole: bool, example: str) -> float:
        """One limit of a range."""
        value = self.value(node)
        number = value.value if isinstance(value, Literal) else None
        if type(number) is int and (whole or abs(number) < 2**1023):
            return number if whole else float(number)
        if type(number) is float and math.isfinite(number) and not whole:
            return number
        raise self.error(f"the limit of a range is {'a whole' if whole else 'a finite'} number", node, example)


_SOME_DTYPES = ", ".join(list(DTYPES)[:9])


def _only_integers(node: ast.expr) -> bool:
    """Return whether nothing but whole numbers and tuples stands in it."""
    if isinstance(node, ast.Tuple):
        return all(map(_only_integers, node.elts))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int
