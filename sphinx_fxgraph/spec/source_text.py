"""A text of the grammar as Python, in which every node knows where in the text it stands."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from sphinx_fxgraph.errors import SpecError

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
