#!/usr/bin/python3
"""Writes the small reference values beside this file, which the tests compare Lathe with.

    tests/golden/make_golden.py        (Debian: python3-torch)

Made with PyTorch 1.13 in float64 from float32 weights, so that what differs in a comparison is our
own rounding alone. The models are written out here in plain tensor operations.

    bert/              a BERT classifier of two layers as a Hugging Face directory, and expected.safetensors:
                       a batch, the values after each layer, logits, loss, the gradient of every weight
    causal_block.safetensors   weights, input, output and gradients of a pre-norm block with causal attention
    quantizers.json    numbers and what formats make of them: PyTorch's own roundings, and MASE's
                       definitions written out in float32
"""

import json
import math
import pathlib
import struct

import torch

HERE = pathlib.Path(__file__).parent


def write_safetensors(path, tensors):
    names = {torch.float32: "F32", torch.int32: "I32"}
    header, data = {}, b""
    for name in sorted(tensors):
        tensor = tensors[name]
        if tensor.dtype == torch.float64:
            tensor = tensor.float()
        raw = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def linear(weights, name, x):
    return x @ weights[name + ".weight"].T + weights[name + ".bias"]


def layer_norm(weights, name, x, eps):
    centred = x - x.mean(-1, keepdim=True)
    variance = (centred * centred).mean(-1, keepdim=True)
    return centred / torch.sqrt(variance + eps) * weights[name + ".weight"] + weights[name + ".bias"]


def attention(q, k, v, heads, allowed):
    """`allowed` is broadcast over rows, heads, queries and keys."""
    rows, length, width = q.shape
    q, k, v = (t.reshape(rows, length, heads, width // heads).transpose(1, 2) for t in (q, k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(width // heads)
    weights = torch.softmax(scores.masked_fill(~allowed, -math.inf), -1)
    return (weights @ v).transpose(1, 2).reshape(rows, length, width)


def random_weights(shapes, seed):
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, shape in shapes.items():
        values = 0.3 * torch.randn(shape, generator=generator)
        if "norm" in name.lower() and name.endswith(".weight"):
            values = 1 + values
        # Float32 is what is written; the computation goes on in float64 from the same numbers.
        weights[name] = values.float().double().requires_grad_()
    return weights


def linear_shapes(name, out, into):
    return {name + ".weight": (out, into), name + ".bias": (out,)}


def norm_shapes(name, width):
    return {name + ".weight": (width,), name + ".bias": (width,)}


CONFIG = {
    "architectures": ["BertForSequenceClassification"], "model_type": "bert", "vocab_size": 30,
    "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16,
    "max_position_embeddings": 12, "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.02,
    "pad_token_id": 0,
}


def make_bert():
    width, inner = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    shapes = {
        "bert.embeddings.word_embeddings.weight": (CONFIG["vocab_size"], width),
        "bert.embeddings.position_embeddings.weight": (CONFIG["max_position_embeddings"], width),
        "bert.embeddings.token_type_embeddings.weight": (2, width),
        **norm_shapes("bert.embeddings.LayerNorm", width),
    }
    for layer in range(CONFIG["num_hidden_layers"]):
        place = f"bert.encoder.layer.{layer}."
        for name in ("query", "key", "value"):
            shapes |= linear_shapes(f"{place}attention.self.{name}", width, width)
        shapes |= linear_shapes(place + "attention.output.dense", width, width)
        shapes |= norm_shapes(place + "attention.output.LayerNorm", width)
        shapes |= linear_shapes(place + "intermediate.dense", inner, width)
        shapes |= linear_shapes(place + "output.dense", width, inner)
        shapes |= norm_shapes(place + "output.LayerNorm", width)
    shapes |= linear_shapes("bert.pooler.dense", width, width)
    shapes |= linear_shapes("classifier", 2, width)
    weights = random_weights(shapes, 1)

    lengths, longest = [7, 3, 12, 1], 12
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(1, CONFIG["vocab_size"], (len(lengths), longest), generator=generator)
    mask = torch.arange(longest)[None] < torch.tensor(lengths)[:, None]
    ids = ids * mask
    labels = torch.tensor([1, 0, 0, 1])

    eps = CONFIG["layer_norm_eps"]
    x = (weights["bert.embeddings.word_embeddings.weight"][ids]
         + weights["bert.embeddings.position_embeddings.weight"][:longest]
         + weights["bert.embeddings.token_type_embeddings.weight"][0])
    x = layer_norm(weights, "bert.embeddings.LayerNorm", x, eps)
    expected = {"hidden.0": x}
    for layer in range(CONFIG["num_hidden_layers"]):
        place = f"bert.encoder.layer.{layer}."
        q, k, v = (linear(weights, f"{place}attention.self.{name}", x) for name in ("query", "key", "value"))
        h = attention(q, k, v, CONFIG["num_attention_heads"], mask[:, None, None])
        h = linear(weights, place + "attention.output.dense", h)
        x = layer_norm(weights, place + "attention.output.LayerNorm", x + h, eps)
        h = torch.nn.functional.gelu(linear(weights, place + "intermediate.dense", x))
        h = linear(weights, place + "output.dense", h)
        x = layer_norm(weights, place + "output.LayerNorm", x + h, eps)
        expected[f"hidden.{layer + 1}"] = x
    pooled = torch.tanh(linear(weights, "bert.pooler.dense", x[:, 0]))
    logits = linear(weights, "classifier", pooled)
    loss = torch.nn.functional.cross_entropy(logits, labels)
    loss.backward()
    expected |= {"input_ids": ids.int(), "attention_mask": mask.int(), "labels": labels.int(),
                 "logits": logits, "loss": loss}
    expected |= {"gradient." + name: weight.grad for name, weight in weights.items()}

    folder = HERE / "bert"
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1) + "\n")
    write_safetensors(folder / "model.safetensors", weights)
    write_safetensors(folder / "expected.safetensors", expected)


def make_causal_block():
    width, heads, rows, length = 8, 2, 2, 5
    shapes = {**norm_shapes("norm_1", width), **linear_shapes("qkv", 3 * width, width),
              **linear_shapes("projection", width, width), **norm_shapes("norm_2", width),
              **linear_shapes("up", 2 * width, width), **linear_shapes("down", width, 2 * width)}
    weights = random_weights(shapes, 3)
    generator = torch.Generator().manual_seed(4)
    x = torch.randn((rows, length, width), generator=generator).float().double().requires_grad_()
    q, k, v = linear(weights, "qkv", layer_norm(weights, "norm_1", x, 1e-5)).split(width, -1)
    allowed = torch.ones(length, length, dtype=torch.bool).tril()
    h = x + linear(weights, "projection", attention(q, k, v, heads, allowed))
    up = linear(weights, "up", layer_norm(weights, "norm_2", h, 1e-5))
    gelu = 0.5 * up * (1 + torch.tanh(math.sqrt(2 / math.pi) * (up + 0.044715 * up**3)))
    y = h + linear(weights, "down", gelu)
    loss = (y * y).sum()
    loss.backward()
    expected = {"x": x, "y": y, "loss": loss, "gradient.x": x.grad}
    expected |= weights
    expected |= {"gradient." + name: weight.grad for name, weight in weights.items()}
    write_safetensors(HERE / "causal_block.safetensors", expected)


# MASE's quantizers, as it defines them, in float32.
TINY = 1e-9


def power(exponent):
    return torch.pow(torch.tensor(2.0), exponent)


def mase_integer(x, width, fraction, rounding=torch.round):
    limit = 2.0 ** (width - 1)
    return torch.clamp(rounding(x * 2.0**fraction), -limit, limit - 1) / 2.0**fraction


def mase_minifloat_denorm(x, width, exponent_width, bias):
    bits = width - exponent_width - 1
    e = torch.clamp(torch.ceil(torch.log2(x.abs() + TINY)), -bias, 2**exponent_width - 1 - bias)
    m = torch.clamp(torch.round(x.abs() / power(e) * 2**bits), 0, 2**bits - 1)
    return torch.sign(x + TINY) * power(e) * m / 2**bits


def mase_minifloat_ieee(x, width, exponent_width, bias):
    bits = width - exponent_width - 1
    bias = torch.as_tensor(bias, dtype=torch.float32)
    e = torch.floor(torch.log2(x.abs() + TINY))
    e = torch.minimum(torch.maximum(e, -bias), 2**exponent_width - 1 - bias)
    scaled = x.abs() / power(e) * 2**bits
    normal = power(e) * (1 + torch.clamp(torch.round(scaled - 2**bits), 0, 2**bits - 1) / 2**bits)
    subnormal = power(1 - bias) * torch.clamp(torch.round(scaled / 2), 0, 2**bits - 1) / 2**bits
    return torch.sign(x + TINY) * torch.where(e != -bias, normal, subnormal)


def mase_log(x, width, bias):
    bias = torch.as_tensor(bias, dtype=torch.float32)
    least = power(-bias)
    e = torch.round(torch.log2(x.abs() + 0.1 * least))
    e = torch.minimum(torch.maximum(e, -bias), 2 ** (width - 1) - 1 - bias)
    return torch.sign(x + 0.1 * least) * power(e)


def largest_of_block(x):
    return x.abs().amax(-1, keepdim=True)  # blocks are rows here


def mase_block_fp(x, width, exponent_width, bias):
    bits = width - 1
    e = torch.clamp(torch.ceil(torch.log2(largest_of_block(x))), -bias, 2**exponent_width - 1 - bias)
    k = torch.clamp(torch.round((x.abs() + TINY) / power(e) * 2**bits), 0, 2**bits - 1)
    return torch.sign(x + TINY) * power(e) * k / 2**bits


def mase_block_minifloat(x, width, exponent_width, bias_width):
    bias = torch.clamp(torch.floor(torch.log2(largest_of_block(x))), 0, 2**bias_width - 1)
    return mase_minifloat_ieee(x, width, exponent_width, bias)


def mase_block_log(x, width, bias_width):
    bias = 2 ** (width - 1) - 1 - torch.ceil(torch.log2(largest_of_block(x)))
    return mase_log(x, width, torch.clamp(bias, 0, 2**bias_width - 1))


def make_quantizers():
    generator = torch.Generator().manual_seed(5)
    x = torch.randn((2, 16), generator=generator) * torch.tensor([[0.7], [5.0]])
    cases = {
        "fixed:8,4": torch.fake_quantize_per_tensor_affine(x, 2.0**-4, 0, -128, 127),
        "fixed:4,1": torch.fake_quantize_per_tensor_affine(x, 2.0**-1, 0, -8, 7),
        "minifloat:16,5,bias=15,inf,overflow": x.half().float(),
        "minifloat:16,8,bias=127,inf,overflow": x.bfloat16().float(),
        "mase.integer:8,4": mase_integer(x, 8, 4),
        "mase.integer_floor:8,3": mase_integer(x, 8, 3, torch.floor),
        "mase.minifloat_denorm:8,4,bias=7": mase_minifloat_denorm(x, 8, 4, 7),
        "mase.minifloat_ieee:8,4,bias=7": mase_minifloat_ieee(x, 8, 4, 7),
        "mase.log:4,bias=5": mase_log(x, 4, 5.0),
        "mase.block_fp:8,8,bias=127,block=1x16": mase_block_fp(x, 8, 8, 127),
        "mase.block_minifloat:8,4,bias_width=8,block=1x16": mase_block_minifloat(x, 8, 4, 8),
        "mase.block_log:8,bias_width=8,block=1x16": mase_block_log(x, 8, 8),
        "mase.binary": torch.where(x >= 0, 1.0, -1.0),
    }
    lines = [f' "{name}": {json.dumps(y.flatten().tolist())}' for name, y in cases.items()]
    text = ('{"shape": [2, 16],\n"x": ' + json.dumps(x.flatten().tolist()) + ',\n"y": {\n'
            + ",\n".join(lines) + "}}\n")
    (HERE / "quantizers.json").write_text(text)


if __name__ == "__main__":
    make_bert()
    make_causal_block()
    make_quantizers()
