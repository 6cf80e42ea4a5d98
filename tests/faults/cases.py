"""The table of faults: what a model may do, at which stage of a capture, and what may stand in a directive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

KINDS = {
    # exceptions
    "ValueError": "raise ValueError('no')",
    "no message": "raise RuntimeError",
    "long message": "raise ValueError('x' * 1_000_000)",
    "message of lines": "raise ValueError('a\\nWARNING: b\\n\\n.. raw:: html\\n')",
    "message of controls": "raise ValueError('\\x1b[1m\\x00\\x07 \\ud800 \\u202e')",
    "message of markup": "raise ValueError('</script><!--<script>alert(1)</script>')",
    "text that raises": "raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})()",
    "text that is none": "raise type('Mute', (Exception,), {'__str__': lambda self: None})()",
    "odd class name": "raise type('A\\nB <b> \\x00', (Exception,), {})('no')",
    "own base class": "raise type('Own', (BaseException,), {})('no')",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "GeneratorExit": "raise GeneratorExit",
    "StopIteration": "raise StopIteration",
    "exception group": "raise ExceptionGroup('many', [ValueError('a'), TypeError('b')])",
    "cause of itself": "a = ValueError('a'); b = ValueError('b'); a.__cause__ = b; b.__cause__ = a; raise a",
    "recursion": "(lambda f: f(f))(lambda f: f(f))",
    "recursion in C": "x = []\nfor _ in range(200_000): x = [x]\nrepr(x)",
    "MemoryError": "raise MemoryError",
    "allocation": "bytearray(1 << 62)",
    "assertion": "assert 1 == 2, 'no'",
    "warning as error": "import warnings; warnings.simplefilter('error'); warnings.warn('no')",
    # ends of the process
    "sys.exit": "sys.exit()",
    "sys.exit with text": "sys.exit('usage: run.py DATA')",
    "argparse": "import argparse; p = argparse.ArgumentParser()\np.add_argument('data'); p.parse_args([])",
    "os._exit 0": "os._exit(0)",
    "os._exit 7": "os._exit(7)",
    "SIGSEGV": "os.kill(os.getpid(), signal.SIGSEGV)",
    "SIGABRT": "os.abort()",
    "SIGTERM": "os.kill(os.getpid(), signal.SIGTERM)",
    "SIGKILL of the server": "os.kill(os.getppid(), signal.SIGKILL)",
    # time
    "loop": "while True: pass",
    "sleep": "time.sleep(3600)",
    "lock": "import threading; k = threading.Lock(); k.acquire(); k.acquire()",
    "SIGSTOP": "os.kill(os.getpid(), signal.SIGSTOP)",
    # other processes and threads
    "fork": "os.fork() or time.sleep(3600)",
    "session": "subprocess.Popen(['sleep', '3600'], start_new_session=True)",
    "daemon": "subprocess.Popen('setsid sleep 3600 >/dev/null 2>&1 &', shell=True, start_new_session=True)",
    "thread": "import threading; threading.Thread(target=time.sleep, args=(3600,)).start()",
    "pool": "import multiprocessing.pool; multiprocessing.pool.ThreadPool(2)",
    # what belongs to the process
    "closed files": "os.closerange(3, 4096)",
    "closed output": "os.close(1); os.close(2)",
    "output is None": "sys.stdout = sys.stderr = None",
    "flood": "[print('x' * 99_999) for _ in range(300)]",
    "binary output": "os.write(1, bytes(range(256)) * 99)",
    "folder": "os.chdir('/')",
    "temporary folder": "shutil.rmtree(tempfile.gettempdir(), ignore_errors=True)",
    "temporary files": "[tempfile.mkstemp() for _ in range(9)]; tempfile.mkdtemp()",
    "environment": "os.environ.clear()",
    "locale": "import locale; locale.setlocale(locale.LC_ALL, 'C')",
    "import path": "sys.path.clear()",
    "modules": "[sys.modules.pop(name) for name in list(sys.modules) if name.startswith('json')]",
    "builtins": "import builtins; builtins.open = builtins.print = builtins.repr = None",
    "torch": "torch.nn.Linear.__repr__ = torch.Tensor.__repr__ = lambda self: 1 / 0",
    "defaults": "torch.set_default_dtype(torch.float64); torch.set_default_device('meta')",
    "seed": "torch.manual_seed(7); torch.use_deterministic_algorithms(True)",
    "recursion limit": "sys.setrecursionlimit(120)",
    "alarm": "signal.alarm(1); time.sleep(2)",
    "profiler": "sys.setprofile(lambda *_: None); sys.settrace(None)",
    "garbage": "gc.disable(); gc.set_threshold(1)",
    # network
    "connection": "import socket; socket.create_connection(('192.0.2.1', 80), 3600)",
    "download": "import urllib.request; urllib.request.urlopen('http://example.org')",
    "program with network": "subprocess.run([sys.executable, '-c', \"import socket; "
    "socket.create_connection(('192.0.2.1', 80), 3600)\"], check=True)",
}
"""What the model's code does; each is a few statements."""

STAGES = ("import", "build", "factory", "forward", "after", "child", "again", "repr", "inputs")
"""Where it does it: at import; in ``__init__``; in the function that is the target; in ``forward``, before and after
its layers; in a submodule; the second time that it runs; where it is printed; in the function that makes the inputs."""

_MODULE = """\
import gc, os, shutil, signal, subprocess, sys, tempfile, time
import torch
from torch import nn

def _do(stage):
    if stage == {stage!r}:
        fault()

def fault():
{fault}

_do("import")

class Child(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        _do("child")
        return torch.relu(self.layer(x))

    def extra_repr(self):
        _do("repr")
        return "odd"

class Net(nn.Module):
    calls = 0

    def __init__(self):
        super().__init__()
        _do("build")
        self.child = Child()
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        Net.calls += 1
        _do("forward")
        if Net.calls > 1:
            _do("again")
        y = self.last(self.child(x))
        _do("after")
        return y

def make():
    _do("factory")
    return Net()

def inputs():
    _do("inputs")
    return (torch.randn(1, 4),)
"""


@dataclass(frozen=True)
class Case:
    """A directive that something is wrong with, and the module that it names."""

    group: str
    kind: str
    stage: str
    directive: str
    module: str = ""
    code: str = ""


def models(kinds: list[str] | None = None, seconds: int = 4) -> Iterator[Case]:
    """Every kind at every stage."""
    for number, (kind, fault) in enumerate(KINDS.items()):
        if kinds is not None and kind not in kinds:
            continue
        for stage in STAGES:
            module = f"case{number}_{stage}"
            body = "\n".join(f"    {line}" for line in fault.split("\n"))
            options = f"   :inputs: {module}.inputs()\n   :timeout: {seconds}\n"
            yield Case(
                "model",
                kind,
                stage,
                f".. fxgraph:: {module}.make\n{options}",
                module,
                _MODULE.format(stage=stage, fault=body),
            )


_DEEP = "(" * 500 + ")" * 500

TARGETS = {
    "none": "",
    "spaces": "   ",
    "no package": "nowhere.at.all",
    "no attribute": "good.Nothing",
    "near name": "good.net",
    "a module": "good",
    "a number": "good.NUMBER",
    "a string": "good.TEXT",
    "a path": "good/net.py",
    "arithmetic": "good.Net() + 1",
    "deep": f"good.Net({_DEEP})",
    "torn": "good.Net(",
    "lambda": "(lambda: 1)()",
    "comprehension": "[good.Net() for _ in x]",
    "f-string": 'good.Net(f"{1}")',
    "keyword twice": "good.Net(x=1, x=2)",
    "stars": "good.Net(*x, **y)",
    "argument too many": "good.Net(1, 2, 3)",
    "colon first": ":Net",
    "two colons": "good:a:Net",
    "keyword": "good.class",
    "NUL": "good.N\x00et",
    "escape": "good.\x1b[1mNet",
    "bidi": "good.N\u202eet",
    "emoji": "good.🙂",
    "long": f"good.{'n' * 5000}",
    "markup": "good.Net<script>",
    "role": "good.:ref:`x`",
    "builtin": "print",
    "exec": "exec('1 / 0')",
    "walrus": "(x := good.Net)()",
    "huge number": f"good.Net({'9' * 5000})",
}
INPUTS = {
    "none": "",
    "words": "three of them",
    "negative": "-1, 4",
    "zero": "0, 4",
    "too wide": "1, 5",
    "too large": "1, 4000000000000",
    "too many": "(1, 4), (1, 4), (1, 4)",
    "dtype": "f33[1, 4]",
    "integers": "i64[1, 4]",
    "empty range": "i64[1, 4] < 0",
    "unknown keyword": "z=f32[1, 4]",
    "a string": "'text'",
    "None": "None",
    "no function": "good.nothing()",
    "deep": _DEEP,
    "many dimensions": ", ".join(["1"] * 500),
    "a float": "1.5, 4",
    "nan": "nan",
    "torn": "f32[1, 4",
    "auto": "auto",
    "complex": "c64[1, 4]",
    "bytes": "b'\\x00'",
    "dict": "{'x': f32[1, 4]}",
    "huge": "9" * 400 + ", 4",
}
OPTIONS = {
    "unknown": ":inputss: 1",
    "timeout of ages": ":timeout: 999999999999999",
    "timeout of words": ":timeout: soon",
    "timeout of nothing": ":timeout: 0",
    "negative seed": ":seed: -1",
    "huge seed": ":seed: 999999999999999",
    "mode": ":mode: test",
    "tracer": ":tracer: jit",
    "device": ":device: cuda",
    "dtype": ":dtype: f31",
    "method": ":method: no such",
    "absent method": ":method: encode",
    "submodule": ":submodule: nothing.here",
    "leaf": ":leaf: [[[",
    "network": ":network: perhaps",
    "depth": ":depth: -1",
    "huge depth": ":depth: 99999999999999999999",
    "open": ":open: nothing.here",
    "fold": ":fold: bogus",
    "direction": ":direction: up",
    "nontensor": ":nontensor: yes",
    "color": ":color: red",
    "height": ":height: tall",
    "table": ":table: bogus",
    "dims": ":dims: N C H W D E F",
    "stages": ":stages: maybe",
    "expect": ":expect: f32[9]",
    "expect error": ":expect: error",
    "expect-params": ":expect-params: 7",
    "expect-macs": ":expect-macs: many",
    "align": ":align: top",
    "name of markup": ":name: <script>alert(1)</script>",
    "alt of markup": ':alt: "><script>alert(1)</script>\x00',
    "class": ":class: ???",
}
BODIES = {
    "no Python": "model = = 1",
    "sets nothing": "x = 1",
    "raises": "model = 1 / 0",
    "exits": "import sys; sys.exit(3); model = 1",
    "no module": "model = 7",
    "imports nothing": "import nowhere; model = nowhere.Net()",
    "loops": "model = 1\nwhile True: pass",
    "NUL": "model = '\x00'",
    "deep": f"model = {_DEEP}",
    "both": "import good; model = good.Net(); inputs = 7",
}


def directives(seconds: int = 4) -> Iterator[Case]:
    """Everything that may be wrong with the text of a directive."""
    limit = f"   :timeout: {seconds}\n"
    for kind, target in TARGETS.items():
        yield Case("target", kind, "text", f".. fxgraph:: {target}\n   :inputs: 1, 4\n{limit}")
    for kind, inputs in INPUTS.items():
        yield Case("inputs", kind, "text", f".. fxgraph:: good.Net\n   :inputs: {inputs}\n{limit}")
    for kind, option in OPTIONS.items():
        own = "" if "timeout" in option else limit
        yield Case("option", kind, "text", f".. fxgraph:: good.Net\n   :inputs: 1, 4\n   {option}\n{own}")
    for kind, code in BODIES.items():
        body = "\n".join(f"   {line}" for line in code.split("\n"))
        yield Case("body", kind, "text", f".. fxgraph::\n   :inputs: 1, 4\n{limit}\n{body}\n")
