"""Compare the MACs of mixtures of experts in transformers with torch's counter.

Reference: `torch.utils.flop_counter` on the model with eager experts (a loop over plain linear layers) and eager
attention. Each model is captured with each implementation of the experts, on the CPU and on the meta device, in
float32. Needs transformers 5::

    python benchmarks/ground_truth/experts.py
"""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

from sphinx_fxgraph.capture.capture import record_model

FAMILIES = ("mixtral", "qwen2_moe", "qwen3_moe", "deepseek_v3", "olmoe", "gpt_oss", "glm4_moe", "granitemoe", "jamba")
IMPLEMENTATIONS = ("grouped_mm", "batched_mm", "eager")
SMALL = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 128,
    "moe_intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_experts": 8,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "use_cache": False,
}
OF_FAMILY: dict[str, dict[str, Any]] = {
    "deepseek_v3": {
        "num_key_value_heads": 4,
        "n_routed_experts": 8,
        "n_group": 2,
        "topk_group": 1,
        "kv_lora_rank": 16,
        "q_lora_rank": 16,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8,
        "v_head_dim": 16,
        "first_k_dense_replace": 1,
    },
    "glm4_moe": {"n_routed_experts": 8, "first_k_dense_replace": 1},
    "gpt_oss": {"head_dim": 16},
    "qwen3_moe": {"head_dim": 16},
}


def build(family: str, implementation: str, device: str) -> Any:
    """Return a small model of a family."""
    config = transformers.CONFIG_MAPPING[family](**SMALL | OF_FAMILY.get(family, {}))
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval().to(device)
    model.set_experts_implementation(implementation)
    return model


def rows(family: str) -> list[list[str]]:
    """Return a row for each implementation of the experts."""
    ids = torch.arange(16)[None] % 64
    with FlopCounterMode(display=False) as reference, torch.no_grad():
        build(family, "eager", "cpu")(ids)
    macs = reference.get_total_flops() // 2
    found = []
    for implementation in IMPLEMENTATIONS:
        row = [family, implementation, str(macs)]
        for device in ("cpu", "meta"):
            record = record_model(build(family, implementation, device), (ids.to(device),), {})
            failed = record.failure and (record.failure.message.partition(". ")[0])
            row.append(failed or str(record.totals.macs) + "".join(f", not {name}" for name in record.totals.uncounted))
        found.append(row)
    return found


def main() -> None:
    """Write ``experts.csv`` beside this file."""
    with Path(__file__).with_name("experts.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["family", "experts", f"torch {torch.__version__.partition('+')[0]}, eager", "cpu", "meta"])
        for family in sys.argv[1:] or FAMILIES:
            writer.writerows(rows(family))


if __name__ == "__main__":
    main()
