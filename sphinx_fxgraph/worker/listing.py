"""The models that a registry's callable names, found in a process of its own, with the sources they were found by."""

from __future__ import annotations

import importlib
import json
import operator
import os
import sys
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from sphinx_fxgraph.cache.fingerprints import depends_on
from sphinx_fxgraph.worker import sandbox


def listed(request: Mapping[str, Any], result: int, output: int) -> NoReturn:
    """Call what the request names, write what it gives to ``result`` as JSON, and end this process.

    Args:
        request: ``callable`` as ``module:name``, ``sys_path``, ``folder`` and ``seconds``.
        result: file descriptor; gets ``models`` with ``sources``, ``folders`` and ``distributions``, or an ``error``.
        output: file descriptor; takes what the code prints.
    """
    status = 1
    try:
        log = sandbox.enter(output, request["folder"], request["sys_path"])
        sandbox.adopt_orphans()
        sandbox.leave_network()
        sandbox.refuse_network()
        sandbox.limit_time(request["seconds"], log)
        answer = json.dumps(_answer(request["callable"])).encode()
        sandbox.end_children()
        with open(result, "wb") as file:
            file.write(answer)
        status = 0
    except BaseException:  # noqa: BLE001 - told by the exit status and the output
        traceback.print_exc()
    finally:
        os._exit(status)


def _answer(name: str) -> dict[str, Any]:
    module, _, path = name.partition(":")
    try:
        found = operator.attrgetter(path)(importlib.import_module(module))()
        models = dict(found) if isinstance(found, Mapping) else list(found)
        json.dumps(models)
    except Exception as error:  # noqa: BLE001 - someone else's code
        return {"error": f"{type(error).__name__}: {error}"}
    sources, distributions = depends_on(_files(module.partition(".")[0]))
    return {
        "models": models,
        "sources": {source.file: source.digest for source in sources},
        "folders": _folders([source.file for source in sources], module.partition(".")[0]),
        "distributions": distributions,
    }


def _files(package: str) -> Iterable[str]:
    """The files of a package that are loaded by now."""
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if f"{name}.".startswith(f"{package}.") and file:
            yield file


def _folders(sources: Iterable[str], package: str) -> dict[str, list[str]]:
    """What else stands beside the sources: a registry that looks for its models finds a new file."""
    folders = {os.path.dirname(source) for source in sources}  # noqa: PTH120 - not a path but a name of ours
    found = {}
    for place in getattr(sys.modules[package], "__path__", ()):
        for folder in sorted(filter(None, folders)):
            files = Path(place).parent.joinpath(folder).glob("*.py")
            found[folder] = sorted(file.name for file in files)
    return found
