"""Transformers of our own, wired and named like the ones in use."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

# -- ViT-B/16 (Dosovitskiy et al. 2020, arXiv:2010.11929)


class EncoderBlock(nn.Module):
    """Pre-norm attention and MLP."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.dropout = nn.Dropout(0.0)
        self.ln_2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(width, hidden), nn.GELU(), nn.Dropout(0.0), nn.Linear(hidden, width), nn.Dropout(0.0)
        )

    def forward(self, given: Tensor) -> Tensor:
        torch._assert(given.dim() == 3, f"Expected (batch_size, seq_length, hidden_dim) got {given.shape}")
        x = self.ln_1(given)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x) + given
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Position embedding and the blocks."""

    def __init__(self, length: int, layers: int, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.empty(1, length, width))
        self.dropout = nn.Dropout(0.0)
        self.layers = nn.Sequential()
        for number in range(layers):
            self.layers.add_module(f"encoder_layer_{number}", EncoderBlock(width, heads, hidden))
        self.ln = nn.LayerNorm(width, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        torch._assert(x.dim() == 3, f"Expected (batch_size, seq_length, hidden_dim) got {x.shape}")
        return self.ln(self.layers(self.dropout(x + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """Asserts its input's size, as torchvision's does."""

    def __init__(self, image: int = 224, patch: int = 16, width: int = 768) -> None:
        super().__init__()
        self.image_size, self.patch_size, self.hidden_dim = image, patch, width
        self.conv_proj = nn.Conv2d(3, width, patch, patch)
        self.class_token = nn.Parameter(torch.empty(1, 1, width))
        self.encoder = Encoder((image // patch) ** 2 + 1, 12, width, 12, 3072)
        self.heads = nn.Sequential()
        self.heads.add_module("head", nn.Linear(width, 1000))

    def forward(self, x: Tensor) -> Tensor:
        n, h, w = x.shape[0], x.shape[2], x.shape[3]
        torch._assert(h == self.image_size, f"Wrong image height! Expected {self.image_size} but got {h}!")
        torch._assert(w == self.image_size, f"Wrong image width! Expected {self.image_size} but got {w}!")
        x = self.conv_proj(x)
        x = x.reshape(n, self.hidden_dim, (h // self.patch_size) * (w // self.patch_size)).permute(0, 2, 1)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1)
        return self.heads(self.encoder(x)[:, 0])


# -- Swin-T (Liu et al. 2021, arXiv:2103.14030)


class WindowAttention(nn.Module):
    """Attention in shifted windows with a table of relative positions."""

    def __init__(self, width: int, heads: int, size: int, shift: int, window: int = 7) -> None:
        super().__init__()
        self.heads, self.size, self.window = heads, size, window
        self.shift = shift if size > window else 0
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.relative_position_bias_table = nn.Parameter(torch.empty((2 * window - 1) ** 2, heads))
        self.register_buffer("relative_position_index", torch.zeros(window**4, dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        size, window, heads = self.size, self.window, self.heads
        batch, _, _, width = x.shape
        if self.shift:
            x = torch.roll(x, shifts=(-self.shift, -self.shift), dims=(1, 2))
        count = (size // window) ** 2
        x = x.view(batch, size // window, window, size // window, window, width)
        x = x.permute(0, 1, 3, 2, 4, 5).reshape(batch * count, window * window, width)
        qkv = self.qkv(x).reshape(x.size(0), x.size(1), 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        q = q * (width // heads) ** -0.5
        attn = q.matmul(k.transpose(-2, -1))
        bias = self.relative_position_bias_table[self.relative_position_index]
        attn = attn + bias.view(window * window, window * window, -1).permute(2, 0, 1).contiguous().unsqueeze(0)
        x = functional.softmax(attn, dim=-1).matmul(v).transpose(1, 2).reshape(x.size(0), x.size(1), width)
        x = self.proj(x)
        x = x.view(batch, size // window, size // window, window, window, width)
        x = x.permute(0, 1, 3, 2, 4, 5).reshape(batch, size, size, width)
        if self.shift:
            x = torch.roll(x, shifts=(self.shift, self.shift), dims=(1, 2))
        return x


class SwinBlock(nn.Module):
    """Window attention and MLP."""

    def __init__(self, width: int, heads: int, size: int, shift: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = WindowAttention(width, heads, size, shift)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    """Four neighbours become one of twice the width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.reduction = nn.Linear(4 * width, 2 * width, bias=False)
        self.norm = nn.LayerNorm(4 * width)

    def forward(self, x: Tensor) -> Tensor:
        corners = [x[:, i::2, j::2, :] for j in (0, 1) for i in (0, 1)]
        return self.reduction(self.norm(torch.cat(corners, -1)))


class Swin(nn.Module):
    """Stages of blocks, each with half the resolution of the one before."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.patch_embed = nn.Conv2d(3, width, 4, 4)
        self.patch_norm = nn.LayerNorm(width)
        self.features = nn.Sequential()
        size = 56
        for stage, (depth, heads) in enumerate(((2, 3), (2, 6), (6, 12), (2, 24))):
            if stage:
                self.features.append(PatchMerging(width))
                width, size = 2 * width, size // 2
            self.features.append(
                nn.Sequential(*(SwinBlock(width, heads, size, 3 if block % 2 else 0) for block in range(depth)))
            )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch_norm(self.patch_embed(x).permute(0, 2, 3, 1))
        x = self.norm(self.features(x)).permute(0, 3, 1, 2)
        return self.head(torch.flatten(functional.adaptive_avg_pool2d(x, 1), 1))


# -- BERT-base (Devlin et al. 2018, arXiv:1810.04805)


class BertEmbeddings(nn.Module):
    """Words, positions, token types."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(30522, width, padding_idx=0)
        self.position_embeddings = nn.Embedding(512, width)
        self.token_type_embeddings = nn.Embedding(2, width)
        self.LayerNorm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(0.1)
        self.register_buffer("position_ids", torch.arange(512).expand((1, -1)), persistent=False)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        position_ids = torch.narrow(self.position_ids, 1, 0, input_ids.size(1))
        x = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        return self.dropout(self.LayerNorm(x + self.position_embeddings(position_ids)))


class BertSelfAttention(nn.Module):
    """Twelve heads, with a mask that all layers share."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = x.size()
        query = self.query(x).view(batch, length, self.heads, 64).transpose(1, 2)
        key = self.key(x).view(batch, length, self.heads, 64).transpose(1, 2)
        value = self.value(x).view(batch, length, self.heads, 64).transpose(1, 2)
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(64)
        probabilities = self.dropout(functional.softmax(scores + mask, dim=-1))
        context = torch.matmul(probabilities, value).permute(0, 2, 1, 3).contiguous()
        return context.view(batch, length, width)


class BertOutput(nn.Module):
    """Projection, then the norm of the sum."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, width)
        self.LayerNorm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(0.1)

    def forward(self, hidden: Tensor, given: Tensor) -> Tensor:
        return self.LayerNorm(self.dropout(self.dense(hidden)) + given)


class BertLayer(nn.Module):
    """Attention, then two linear layers."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.attention = nn.ModuleDict({"self": BertSelfAttention(width, heads), "output": BertOutput(width, width)})
        self.intermediate = nn.Sequential(nn.Linear(width, hidden), nn.GELU())
        self.output = BertOutput(hidden, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention["output"](self.attention["self"](x, mask), x)
        return self.output(self.intermediate(x), x)


class Bert(nn.Module):
    """Returns the last and all other hidden states if asked to, and the pooled first token."""

    def __init__(self, layers: int = 12, width: int = 768, *, hidden_states: bool = False) -> None:
        super().__init__()
        self.hidden_states = hidden_states
        self.embeddings = BertEmbeddings(width)
        self.encoder = nn.ModuleList(BertLayer(width, 12, 4 * width) for _ in range(layers))
        self.pooler = nn.Sequential(nn.Linear(width, width), nn.Tanh())

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> dict[str, object]:
        mask = (1.0 - attention_mask[:, None, None, :].to(torch.float32)) * -3.4e38
        states = [self.embeddings(input_ids, token_type_ids)]
        for layer in self.encoder:
            states.append(layer(states[-1], mask))
        pooled = self.pooler(states[-1][:, 0])
        found: dict[str, object] = {"last_hidden_state": states[-1], "pooler_output": pooled}
        return found | {"hidden_states": tuple(states)} if self.hidden_states else found


# -- Llama (Touvron et al. 2023, arXiv:2307.09288), with grouped keys


class RMSNorm(nn.Module):
    """In f32, with a scale."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        h = x.to(torch.float32)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * h.to(torch.bfloat16)


def _rotate_half(x: Tensor) -> Tensor:
    return torch.cat((-x[..., 64:], x[..., :64]), dim=-1)


class LlamaAttention(nn.Module):
    """Rotary positions, fewer keys than queries."""

    def __init__(self, width: int, heads: int, keys: int) -> None:
        super().__init__()
        self.heads, self.keys = heads, keys
        self.q_proj = nn.Linear(width, heads * 128, bias=False)
        self.k_proj = nn.Linear(width, keys * 128, bias=False)
        self.v_proj = nn.Linear(width, keys * 128, bias=False)
        self.o_proj = nn.Linear(heads * 128, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        heads, keys, length = self.heads, self.keys, 128
        q = self.q_proj(x).view(1, length, heads, 128).transpose(1, 2)
        k = self.k_proj(x).view(1, length, keys, 128).transpose(1, 2)
        v = self.v_proj(x).view(1, length, keys, 128).transpose(1, 2)
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        q = q * cos + _rotate_half(q) * sin
        k = k * cos + _rotate_half(k) * sin
        k = k[:, :, None].expand(1, keys, heads // keys, length, 128).reshape(1, heads, length, 128)
        v = v[:, :, None].expand(1, keys, heads // keys, length, 128).reshape(1, heads, length, 128)
        scores = torch.matmul(q, k.transpose(2, 3)) * 128**-0.5 + mask
        weights = functional.softmax(scores, dim=-1, dtype=torch.float32).to(torch.bfloat16)
        weights = functional.dropout(weights, 0.0, training=False)
        x = torch.matmul(weights, v).transpose(1, 2).contiguous()
        return self.o_proj(x.reshape(1, length, heads * 128))


class LlamaMLP(nn.Module):
    """Gated."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)
        self.act_fn = nn.SiLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class LlamaDecoderLayer(nn.Module):
    """Two residual branches."""

    def __init__(self, width: int, heads: int, keys: int, hidden: int) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(width)
        self.self_attn = LlamaAttention(width, heads, keys)
        self.post_attention_layernorm = RMSNorm(width)
        self.mlp = LlamaMLP(width, hidden)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaRotaryEmbedding(nn.Module):
    """Cosine and sine, shared by all layers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("inv_freq", torch.ones(64))

    def forward(self, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        freqs = (self.inv_freq[None, :, None].float() @ position_ids[:, None, :].float()).transpose(1, 2)
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos().to(torch.bfloat16), emb.sin().to(torch.bfloat16)


class Llama(nn.Module):
    """Decoder only."""

    def __init__(self, layers: int, width: int = 4096, heads: int = 32, keys: int = 8, hidden: int = 14336) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(32000, width)
        self.rotary_emb = LlamaRotaryEmbedding()
        self.layers = nn.ModuleList(LlamaDecoderLayer(width, heads, keys, hidden) for _ in range(layers))
        self.norm = RMSNorm(width)
        self.lm_head = nn.Linear(width, 32000, bias=False)

    def forward(self, input_ids: Tensor, position_ids: Tensor, mask: Tensor) -> Tensor:
        x = self.embed_tokens(input_ids)
        cos, sin = self.rotary_emb(position_ids)
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        return self.lm_head(self.norm(x))


# -- T5-small (Raffel et al. 2019, arXiv:1910.10683)


class T5LayerNorm(nn.Module):
    """Scale only."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class T5Attention(nn.Module):
    """With a position bias that the first layer makes for all."""

    def __init__(self, width: int, heads: int, *, has_bias: bool) -> None:
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, heads * 64, bias=False)
        self.k = nn.Linear(width, heads * 64, bias=False)
        self.v = nn.Linear(width, heads * 64, bias=False)
        self.o = nn.Linear(heads * 64, width, bias=False)
        self.relative_attention_bias = nn.Embedding(32, heads) if has_bias else None

    def forward(
        self, x: Tensor, memory: Tensor, buckets: Tensor, bias: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        q = self.q(x).view(1, -1, self.heads, 64).transpose(1, 2)
        k = self.k(memory).view(1, -1, self.heads, 64).transpose(1, 2)
        v = self.v(memory).view(1, -1, self.heads, 64).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(3, 2))
        if self.relative_attention_bias is not None:
            bias = self.relative_attention_bias(buckets).permute(2, 0, 1).unsqueeze(0)
        if bias is not None:
            scores = scores + bias
        weights = functional.softmax(scores.float(), dim=-1).type_as(scores)
        context = torch.matmul(weights, v).transpose(1, 2).contiguous().view(1, -1, self.heads * 64)
        return self.o(context), bias


class T5Block(nn.Module):
    """Self-attention, in the decoder cross-attention, and linear layers."""

    def __init__(self, width: int, heads: int, hidden: int, *, has_bias: bool, decoder: bool) -> None:
        super().__init__()
        self.attention = T5Attention(width, heads, has_bias=has_bias)
        self.norm = T5LayerNorm(width)
        self.cross = T5Attention(width, heads, has_bias=False) if decoder else None
        self.cross_norm = T5LayerNorm(width) if decoder else None
        self.wi = nn.Linear(width, hidden, bias=False)
        self.wo = nn.Linear(hidden, width, bias=False)
        self.last_norm = T5LayerNorm(width)

    def forward(
        self, x: Tensor, memory: Tensor | None, buckets: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        normed = self.norm(x)
        found, bias = self.attention(normed, normed, buckets, bias)
        x = x + found
        if self.cross is not None and self.cross_norm is not None and memory is not None:
            x = x + self.cross(self.cross_norm(x), memory, buckets)[0]
        return x + self.wo(functional.relu(self.wi(self.last_norm(x)))), bias


class T5Stack(nn.Module):
    """Encoder or decoder."""

    def __init__(self, embed_tokens: nn.Embedding, layers: int, *, decoder: bool) -> None:
        super().__init__()
        self.embed_tokens = embed_tokens
        self.block = nn.ModuleList(
            T5Block(512, 8, 2048, has_bias=number == 0, decoder=decoder) for number in range(layers)
        )
        self.final_layer_norm = T5LayerNorm(512)

    def forward(self, ids: Tensor, buckets: Tensor, memory: Tensor | None = None) -> Tensor:
        x, bias = self.embed_tokens(ids), None
        for block in self.block:
            x, bias = block(x, memory, buckets, bias)
        return self.final_layer_norm(x)


class T5(nn.Module):
    """Encoder and decoder that share their embedding with the output."""

    def __init__(self, layers: int = 6) -> None:
        super().__init__()
        self.shared = nn.Embedding(32128, 512)
        self.encoder = T5Stack(self.shared, layers, decoder=False)
        self.decoder = T5Stack(self.shared, layers, decoder=True)
        self.lm_head = nn.Linear(512, 32128, bias=False)

    def forward(self, input_ids: Tensor, decoder_input_ids: Tensor, buckets: Tensor) -> Tensor:
        memory = self.encoder(input_ids, buckets)
        x = self.decoder(decoder_input_ids, buckets, memory)
        return self.lm_head(x * 512**-0.5)
