"""Pages made from a registry, one a model, written when autosummary writes its own, before Sphinx looks for sources.

Each begins with a mark: a page without it was written by hand and is never touched.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import hashlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2.sandbox

from sphinx_fxgraph.cache.fingerprints import SourceFinder
from sphinx_fxgraph.errors import SpecError, suggestion
from sphinx_fxgraph.escape import file_stem, one_line
from sphinx_fxgraph.options import CaptureOptions, FigureOptions, ViewOptions, declared
from sphinx_fxgraph.spec.parser import parse_inputs, parse_target
from sphinx_fxgraph.spec.syntax import packages
from sphinx_fxgraph.sphinxext.domain import fx_domain
from sphinx_fxgraph.sphinxext.messages import warn
from sphinx_fxgraph.worker import registry
from sphinx_fxgraph.worker.registry import Entry, Listing, RegistryError

if TYPE_CHECKING:
    from sphinx.application import Sphinx

    from sphinx_fxgraph.sphinxext.state import Run


OPTIONS = frozenset(("inputs", *(option.name for option in declared(CaptureOptions, ViewOptions, FigureOptions))))
"""The options that a registry may set."""

_MARK = "Written by sphinx-fxgraph for the zoo"
_MARKED = re.compile(rf'(?:\.\.|%|<!--) {_MARK} "(.*)"')

TEMPLATE = """\
{{ title }}
{{ "=" * title|length }}

.. fxgraph:: {{ target }}
   :name: {{ graph }}
{%- for option, value in options.items() %}
   :{{ option }}: {{ value }}
{%- endfor %}
"""
"""The page of a model, where a zoo has no template of its own."""


@dataclass(frozen=True)
class Zoo:
    """An entry of ``fxgraph_zoo``."""

    name: str
    folder: str
    registry: Any
    target: str = "{name}"
    include: Sequence[str] = ("*",)
    exclude: Sequence[str] = ()
    options: Mapping[str, Mapping[str, Any]] | None = None
    template: str = ""

    @property
    def is_markdown(self) -> bool:
        """Return whether its pages are MyST."""
        return self.template.removesuffix(".jinja").removesuffix(".j2").endswith(".md")

    @classmethod
    def parse(cls, name: str, plain: Any) -> Zoo:
        """An entry as ``conf.py`` has it.

        Raises:
            RegistryError: something is wrong with it.
        """
        known = set(cls.__dataclass_fields__) - {"name"}
        if not isinstance(plain, Mapping) or not {"folder", "registry"} <= set(plain):
            raise RegistryError("a zoo needs a folder and a registry")
        if wrong := sorted(set(plain) - known):
            raise RegistryError(f"unknown: {', '.join(wrong)}; there are {', '.join(sorted(known))}")
        zoo = cls(name, **plain)
        parts = Path(str(zoo.folder)).parts
        if not parts or ".." in parts or Path(str(zoo.folder)).is_absolute():
            raise RegistryError(f"folder: {zoo.folder!r} is no folder below the docs")
        return zoo


@dataclass(frozen=True)
class Page:
    """A model of a zoo and the page it has."""

    title: str
    docname: str
    graph: str
    """What the graph on the page is called."""


# -- which models


def _models(app: Sphinx, run: Run, zoo: Zoo) -> list[Entry] | None:
    """The models of a zoo; None where they cannot be known now."""
    found = zoo.registry
    if isinstance(found, str):
        found = _called(app, run, zoo) if registry.is_callable(found) else registry.read(Path(app.confdir, found))
    if found is None:
        return None
    entries = registry.entries(found)
    _check_patterns(zoo, [entry.name for entry in entries])
    return [
        entry
        for entry in entries
        if any(fnmatch.fnmatchcase(entry.name, pattern) for pattern in zoo.include)
        and not any(fnmatch.fnmatchcase(entry.name, pattern) for pattern in zoo.exclude)
    ]


def _check_patterns(zoo: Zoo, names: Sequence[str]) -> None:
    """Warn of each name in the settings of a zoo that no model has, and of patterns that include none."""
    for setting, patterns in (("include", zoo.include), ("exclude", zoo.exclude), ("options", zoo.options or ())):
        for pattern in patterns:
            matters = setting == "include" or not re.search(r"[*?\[]", pattern)
            if matters and names and not any(fnmatch.fnmatchcase(name, pattern) for name in names):
                hint = suggestion(pattern, names)
                warn(f"fxgraph_zoo, {zoo.name}: {setting}: no model is called {one_line(pattern)!r}{hint}", "option")


def _called(app: Sphinx, run: Run, zoo: Zoo) -> Any:
    """Return the models that a registry's callable lists: from the cache, if its sources have not changed."""
    digest = hashlib.sha256(zoo.registry.encode()).hexdigest()[:8]
    name = f"{file_stem(zoo.name)}-{digest}.registry.json"
    kept = Listing.from_json(run.store.text(name))
    fresh = (
        kept is not None
        and run.config.mode != "force"
        and kept.is_fresh(SourceFinder(ignored=run.config.ignore_packages))
    )
    if run.config.mode in ("cached", "off"):
        if run.config.mode == "cached" and not fresh:
            reason = "it is not in the cache" if kept is None else "it is as it was before"
            warn(f'fxgraph_zoo, {zoo.name}: the list of models: {reason}, and fxgraph_mode is "cached"', "cache")
        return kept.models if kept else None
    if kept is not None and fresh and stays_inside(zoo, kept.models):
        return kept.models
    try:
        listing = registry.call(
            zoo.registry,
            python=run.config.python or sys.executable,
            sys_path=list(sys.path),
            folder=str(app.confdir),
            seconds=run.config.timeout,
        )
    except RegistryError as error:
        warn(f"fxgraph_zoo, {zoo.name}: {error}", "import")
        return kept.models if kept else None
    run.store.put_text(name, listing.to_json())
    return listing.models


def stays_inside(zoo: Zoo, models: Any) -> bool:
    """Return whether a list from the cache runs no code but that of packages which ``conf.py`` names for this zoo.

    Anyone may have written the cache. A list that names other packages, as in ``os.system("...")``, does not decide
    what is run: the registry's callable is asked again.
    """
    own = [given for given in (zoo.options or {}).values() if isinstance(given, Mapping)]
    known = {zoo.registry.partition(":")[0].partition(".")[0]}
    with contextlib.suppress(SpecError):  # a template has no names that could be read from it
        known |= packages(parse_target(zoo.target.replace("{name}", "name")))
    try:
        known = known.union(*(packages(parse_inputs(str(given.get("inputs", "")))) for given in own))
        for entry in registry.entries(models):
            values = _values(_compiler(), zoo, entry)
            inputs = parse_inputs(values["options"].get("inputs", ""))
            if not packages(parse_target(values["target"])) | packages(inputs) <= known:
                return False
            if "network" in values["options"] and not any("network" in given for given in own):
                return False
    except (RegistryError, SpecError):
        return False
    return True


# -- the pages


def generate(app: Sphinx) -> None:
    """Write the pages of all zoos, and remove those whose model is gone."""
    run = fx_domain(app.env).run
    for name, plain in app.config.fxgraph_zoo.items():
        try:
            zoo = Zoo.parse(str(name), plain)
            entries = _models(app, run, zoo)
            run.zoos[zoo.name] = _there(app, zoo) if entries is None else _write(app, zoo, entries)
        except RegistryError as error:
            warn(f"fxgraph_zoo, {name}: {error}", "option")


def _write(app: Sphinx, zoo: Zoo, entries: Sequence[Entry]) -> list[Page]:
    folder = Path(app.srcdir, zoo.folder)
    text = _template(app, zoo)
    suffix = ".md" if zoo.is_markdown else ".rst"
    compiled = _compiler()
    pages, kept = [], set()
    for entry, stem in zip(entries, _stems(entries), strict=True):
        path = folder / f"{stem}{suffix}"
        kept.add(path.name)
        try:
            values = _values(compiled, zoo, entry)
        except RegistryError as error:
            warn(f"fxgraph_zoo, {zoo.name}, {one_line(entry.name, 80)}: {error}", "option")
            continue
        pages.append(Page(values["plain_title"], f"{Path(zoo.folder).as_posix()}/{stem}", values["graph"]))
        if path.exists() and _owner(path) is None:  # someone has written a page of their own
            continue
        try:
            body = compiled(text).render(values)
        except jinja2.TemplateError as error:
            raise RegistryError(f"template: {error}") from None
        _put(path, f"{_mark(zoo.name, suffix)}\n\n{body.rstrip()}\n")
    _remove(folder, kept, zoo.name)
    return pages


def _compiler() -> Callable[[str], jinja2.Template]:
    environment = jinja2.sandbox.SandboxedEnvironment(keep_trailing_newline=True, undefined=jinja2.StrictUndefined)
    return functools.cache(environment.from_string)  # most models share their templates


def _there(app: Sphinx, zoo: Zoo) -> list[Page]:
    """The pages of an earlier build, where nobody knows now which there should be."""
    paths = sorted(Path(app.srcdir, zoo.folder).glob("*"))
    stems = [path.stem for path in paths if path.suffix in (".rst", ".md") and _owner(path) == zoo.name]
    folder = Path(zoo.folder).as_posix()
    return [Page(stem, f"{folder}/{stem}", f"{zoo.name}-{stem}") for stem in stems]


def _template(app: Sphinx, zoo: Zoo) -> str:
    if not zoo.template:
        return TEMPLATE
    try:
        return Path(app.confdir, zoo.template).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise RegistryError(f"template: {error}") from None


def _values(compiled: Callable[[str], jinja2.Template], zoo: Zoo, entry: Entry) -> dict[str, Any]:
    """Return what a template can use: text of one line each, the target as the parser understands it, known options.

    The registry may be a file of the cache, which anyone may have written. None of it can begin a directive, end the
    one that it stands in, or give it a body.

    Raises:
        RegistryError: the target is not a target, or the model has an option that the directive does not have.
    """
    name = one_line(entry.name)
    fields = {"name": name, "entry": dict(entry.fields)}
    own_target = entry.fields.get("target")
    try:
        # Only conf.py may say what is a template; a target of the registry is the expression itself.
        text = str(own_target) if own_target else compiled(zoo.target).render(fields)
        target = str(parse_target(text.replace("{name}", name)))
    except jinja2.TemplateError as error:
        raise RegistryError(f"target: {one_line(str(error), 300)}") from None
    except SpecError as error:
        raise RegistryError(one_line(str(error), 300)) from None
    options: dict[str, Any] = {}
    for pattern, given in (zoo.options or {}).items():
        if fnmatch.fnmatchcase(entry.name, pattern):
            options |= given
    own = entry.fields.get("options", {})
    options |= own if isinstance(own, Mapping) else {}
    options |= {"inputs": entry.fields["inputs"]} if "inputs" in entry.fields else {}
    if unknown := sorted(set(map(str, options)) - OPTIONS):
        raise RegistryError(f"unknown option {one_line(unknown[0], 80)!r}; there are {', '.join(sorted(OPTIONS))}")
    options = {option: one_line(str(value)) for option, value in options.items()}
    if "caption" in options:
        options["caption"] = _inert(options["caption"], markdown=zoo.is_markdown)
    graph = options.pop("name", "") or f"{zoo.name}-{name}"
    title = one_line(str(entry.fields.get("title") or name))
    return {
        "name": _inert(name, markdown=zoo.is_markdown),
        "entry": _inert(fields["entry"], markdown=zoo.is_markdown),
        "zoo": zoo.name,
        "plain_title": title,
        "title": _inert(re.sub(r"([\\*`|<]|_(?![A-Za-z0-9]))", r"\\\1", title)),
        "target": target,
        "options": options,
        "graph": graph,
    }


_BLOCK = re.compile(r"\.\.(\s|$)|`{3}|~{3}|:{3}|%|__(\s|$)")
"""What begins a directive, a comment or a fence at the start of a line, in reST or MyST."""


def _inert(value: Any, *, markdown: bool = False) -> Any:
    """Return what a registry says, each text on one line that begins no directive and, in MyST, holds no HTML."""
    if isinstance(value, str):
        line = one_line(value)
        line = line.replace("<", "&lt;") if markdown else line
        return f"\\{line}" if _BLOCK.match(line) else line
    if isinstance(value, Mapping):
        return {one_line(str(key)): _inert(item, markdown=markdown) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_inert(item, markdown=markdown) for item in value]
    return value


def _stems(entries: Sequence[Entry]) -> Iterator[str]:
    """File names without suffix, no two alike, also where upper and lower case are one."""
    taken: set[str] = set()
    for entry in entries:
        stem = file_stem(entry.name, most=100)
        free, number = stem, 1
        while free.lower() in taken:
            number += 1
            free = f"{stem}-{number}"
        taken.add(free.lower())
        yield free


def _mark(zoo: str, suffix: str) -> str:
    return f'{"%" if suffix == ".md" else ".."} {_MARK} "{zoo}"'


def _owner(path: Path) -> str | None:
    """The zoo that a page was written for; None for a page that was not."""
    try:
        with path.open(encoding="utf-8") as file:
            found = _MARKED.match(file.readline())
    except (OSError, UnicodeError):
        return None
    return found[1] if found else None


def _put(path: Path, text: str) -> None:
    """Write a page, if it does not say so already: Sphinx reads a file again when its time has changed."""
    data = text.encode()
    if path.exists() and path.read_bytes().replace(b"\r\n", b"\n") == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _remove(folder: Path, kept: set[str], zoo: str) -> None:
    for path in sorted(folder.glob("*")) if folder.is_dir() else ():
        if path.suffix in (".rst", ".md") and path.name not in kept and _owner(path) == zoo:
            path.unlink()
