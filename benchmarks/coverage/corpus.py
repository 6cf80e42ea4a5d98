"""A corpus of models that plain torch.fx fails on more often than not, with the sizes that others have measured."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # `corpus` itself, which some targets are in

ROWS = [
    ("torch", "torch.nn.BatchNorm2d(8)", "2, 8, 4, 4"),
    ("transformers", "corpus.tiny('Bert', 'Model')", "input_ids=i64[1, 16] < 1000, attention_mask=i64[1, 16] < 2"),
    ("transformers", "corpus.tiny('GPT2', 'LMHeadModel')", "input_ids=i64[1, 16] < 1000, use_cache=False"),
    ("transformers", "corpus.tiny('Llama', 'ForCausalLM')", "input_ids=i64[1, 16] < 1000, use_cache=False"),
    (
        "transformers",
        "corpus.tiny('T5', 'ForConditionalGeneration')",
        "input_ids=i64[1, 16] < 1000, decoder_input_ids=i64[1, 8] < 1000, use_cache=False",
    ),
    ("transformers", "corpus.tiny('ViT', 'ForImageClassification')", "pixel_values=f32[1, 3, 64, 64]"),
    ("transformers", "corpus.tiny('Wav2Vec2', 'Model')", "input_values=f32[1, 16000]"),
    ("transformers", "corpus.tiny('Mamba', 'Model')", "input_ids=i64[1, 16] < 1000, use_cache=False"),
    ("transformers", "corpus.tiny('ResNet', 'ForImageClassification')", "pixel_values=f32[1, 3, 64, 64]"),
    ("transformers", "corpus.tiny('Swin', 'ForImageClassification')", "pixel_values=f32[1, 3, 64, 64]"),
    (
        "torch-geometric",
        "torch_geometric.nn.models.GAE(torch_geometric.nn.models.GCN(16, 32, 2))",
        "f32[5, 16], i64[2, 6] < 5",
    ),
    ("torch-geometric", "corpus.sequential()", "f32[5, 16], i64[2, 6] < 5"),
    ("snntorch", "corpus.spiking()", "4, 2, 20"),
    ("torchvision", "torchvision.models.vit_b_16(image_size=384)", "1, 3, 384, 384"),
    ("timm", "timm.create_model('test_resnet', pretrained=False)", "1, 3, 160, 160"),
    ("timm", "timm.create_model('test_vit', pretrained=False)", "1, 3, 160, 160"),
    ("timm", "timm.create_model('test_efficientnet', pretrained=False)", "1, 3, 160, 160"),
    ("timm", "timm.create_model('test_convnext', pretrained=False)", "1, 3, 160, 160"),
    ("timm", "timm.create_model('resnet18', pretrained=False, features_only=True)", "1, 3, 224, 224"),
]
"""Distribution, target, inputs; those that the other lists do not have.

Without caches, which are objects that the comparison does not look into.
"""


def tiny(family: str, kind: str) -> object:
    """A model of transformers with hidden size 64, two layers, two heads and a vocabulary of 1,000."""
    import transformers

    sizes = {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_layers": 2,
        "num_attention_heads": 2,
        "num_heads": 2,
        "intermediate_size": 128,
        "vocab_size": 1000,
        "image_size": 64,
        "d_model": 64,
        "d_kv": 32,
        "n_embd": 64,
        "n_layer": 2,
        "n_head": 2,
        "patch_size": 8,
        "window_size": 4,
    }
    cls = getattr(transformers, f"{family}Config")
    default = cls()
    own: dict[str, object] = {
        name: size for name, size in sizes.items() if isinstance(getattr(default, name, None), int)
    }
    if family == "Swin":
        own |= {"embed_dim": 16, "depths": [2, 2], "num_heads": [2, 2], "patch_size": 4}
        for name in ("hidden_size", "num_layers", "num_hidden_layers"):  # it has stages
            own.pop(name, None)
    return getattr(transformers, f"{family}{kind}")(cls(**own))


def sequential() -> object:
    """torch-geometric's Sequential, which reads the file that calls it."""
    from torch import nn
    from torch_geometric.nn import GCNConv, Sequential

    return Sequential(
        "x, edge_index", [(GCNConv(16, 64), "x, edge_index -> x"), nn.ReLU(), (GCNConv(64, 7), "x, edge_index -> x")]
    )


def spiking() -> object:
    """A loop over time of spiking neurons."""
    import snntorch
    import torch
    from torch import Tensor, nn

    class Net(nn.Module):
        """Two layers of spikes."""

        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.lif1 = nn.Linear(20, 10), snntorch.Leaky(beta=0.9)
            self.fc2, self.lif2 = nn.Linear(10, 2), snntorch.Leaky(beta=0.9)

        def forward(self, x: Tensor) -> Tensor:
            first, second, spikes = self.lif1.init_leaky(), self.lif2.init_leaky(), []
            for step in range(x.size(0)):
                spike, first = self.lif1(self.fc1(x[step]), first)
                spike, second = self.lif2(self.fc2(spike), second)
                spikes.append(spike)
            return torch.stack(spikes)

    return Net()
