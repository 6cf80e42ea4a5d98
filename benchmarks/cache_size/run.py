"""How large the committed files of models are: record, DOT and layouts together, in bytes.

    python benchmarks/cache_size/run.py [--every 1] [--out docs/design/cache-size.csv]

The models are a Llama of 80 layers and 70 billion parameters, and torchvision's for classification and segmentation,
plain and quantized, of which ``--every 4`` takes each fourth. What is not installed here is left out.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sphinx_fxgraph.cache.store import Store
from sphinx_fxgraph.layout.graphviz import find_engine
from sphinx_fxgraph.render import drawing as compose
from sphinx_fxgraph.render.drawing import Job
from sphinx_fxgraph.spec.spec import GraphSpec
from sphinx_fxgraph.worker import pool

LLAMA = (
    "transformers.LlamaModel(transformers.LlamaConfig(num_hidden_layers=80, hidden_size=8192, "
    "intermediate_size=28672, num_attention_heads=64, num_key_value_heads=8))"
)


def specs(every: int) -> Iterator[GraphSpec]:
    """What is measured."""
    if importlib.util.find_spec("transformers"):
        yield GraphSpec.parse(LLAMA, inputs="i64[1, 128] < 32000")
    if importlib.util.find_spec("torchvision"):
        from torchvision import models

        names = models.list_models(module=models) + models.list_models(module=models.segmentation)
        names += models.list_models(module=models.quantization)
        for name in list(dict.fromkeys(names))[::every]:
            more = ", init_weights=False" if "googlenet" in name or "inception" in name else ""
            more += ", weights_backbone=None" if name in models.list_models(module=models.segmentation) else ""
            target = f"torchvision.models.get_model('{name}', weights=None{more})"
            yield GraphSpec.parse(target, inputs="1, 3, 224, 224")


def main() -> None:
    """Capture, lay out, and write the sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    engine = find_engine()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for spec, record in pool.capture(specs(options.every), progress=lambda name: print(name, file=sys.stderr)):
            if not record.root or record.failure:
                raise SystemExit(f"{spec.target}: {record.failure}")
            store = Store(Path(folder, spec.id))
            store.put_record(spec, record)
            job = Job(record, inside=True)
            compose.lay_out([job], engine)
            store.put_drawing(spec, job.dot(), job.used(), engine.version)
            sizes = {"".join(path.suffixes[-2:]): path.stat().st_size for path in store.folder.iterdir()}
            parts = [
                sum(size for end, size in sizes.items() if end.endswith(kind)) for kind in (".layout.json", ".dot")
            ]
            rows.append((spec.target, sum(sizes.values()), sum(sizes.values()) - sum(parts), *reversed(parts)))
    rows.sort(key=lambda row: -row[1])
    table = csv.writer(options.out.open("w", newline="") if options.out else sys.stdout, lineterminator="\n")
    table.writerows([("model", "bytes", "record", "dot", "layout"), *rows])
    zoo = [row[1] for row in rows if "get_model" in row[0]]
    print(f"{len(zoo)} models of torchvision together: {sum(zoo):,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
