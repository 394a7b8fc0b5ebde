#!/usr/bin/env python3
"""Makes random models of a family with Hugging Face's transformers, for comparison.

    python3 bench/family_rival.py --family gpt2 --count 10 --out rivals
    for m in rivals/*/; do
      lathe run --model $m --inputs $m/inputs.safetensors --out $m/outputs.safetensors
    done
    python3 bench/family_rival.py --compare rivals
    for m in rivals/*/; do lathe export --model $m --out $m/exported; done
    python3 bench/family_rival.py --reopen rivals

Each directory holds a model with random weights in a random configuration and task, the tensors to
feed it with (`inputs.safetensors`) and what transformers answers (`expected.safetensors`).
`--greedy` writes prompts of ids and their greedy continuations instead (`greedy.json`), which
`--continue rivals --lathe LATHE --devices cpu,cuda` compares with what `lathe generate` puts behind them.
`--family resnet` writes images in place of ids, and one model in three with torchvision's names of
its tensors, as a pickled file.
`--compare` prints the largest difference of each and fails above --tolerance.
`--reopen` lets transformers open `exported` in each directory (`lathe export`) and compares too.
Needs torch, transformers and safetensors.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys

import torch
from safetensors.torch import load_file, save_file


def bert_config(rng):
    import transformers

    heads = rng.choice([1, 2, 4])
    return transformers.BertConfig(
        vocab_size=rng.randint(40, 300),
        hidden_size=heads * rng.choice([8, 16, 24]),
        num_hidden_layers=rng.randint(1, 4),
        num_attention_heads=heads,
        intermediate_size=rng.choice([16, 40, 96]),
        hidden_act=rng.choice(["gelu", "gelu_new", "relu", "silu"]),
        max_position_embeddings=rng.randint(24, 64),
        type_vocab_size=2,
        layer_norm_eps=rng.choice([1e-12, 1e-5]),
        initializer_range=rng.choice([0.02, 0.1, 0.3]),
        tie_word_embeddings=rng.random() < 0.7,
        num_labels=rng.randint(2, 5),
        pad_token_id=0,
        attn_implementation="eager",
    )


def gpt2_config(rng):
    import transformers

    heads = rng.choice([1, 2, 4])
    vocabulary = rng.randint(40, 300)
    return transformers.GPT2Config(
        vocab_size=vocabulary,
        n_embd=heads * rng.choice([8, 16, 24]),
        n_layer=rng.randint(1, 4),
        n_head=heads,
        n_inner=rng.choice([None, 40, 96]),
        n_positions=rng.randint(24, 64),
        activation_function=rng.choice(["gelu_new", "gelu", "relu", "silu"]),
        layer_norm_epsilon=rng.choice([1e-5, 1e-6]),
        scale_attn_weights=rng.random() < 0.8,
        scale_attn_by_inverse_layer_idx=rng.random() < 0.3,
        initializer_range=rng.choice([0.02, 0.1, 0.3]),
        tie_word_embeddings=rng.random() < 0.7,
        num_labels=rng.randint(2, 5),
        pad_token_id=vocabulary - 1,
        bos_token_id=vocabulary - 1,
        eos_token_id=vocabulary - 1,
        attn_implementation="eager",
    )


def distilbert_config(rng):
    import transformers

    heads = rng.choice([1, 2, 4])
    return transformers.DistilBertConfig(
        vocab_size=rng.randint(40, 300),
        dim=heads * rng.choice([8, 16, 24]),
        n_layers=rng.randint(1, 4),
        n_heads=heads,
        hidden_dim=rng.choice([16, 40, 96]),
        activation=rng.choice(["gelu", "relu", "silu"]),
        max_position_embeddings=rng.randint(24, 64),
        initializer_range=rng.choice([0.02, 0.1, 0.3]),
        tie_word_embeddings=rng.random() < 0.7,
        num_labels=rng.randint(2, 5),
        pad_token_id=0,
        attn_implementation="eager",
    )


def electra_config(rng):
    import transformers

    heads = rng.choice([1, 2, 4])
    hidden = heads * rng.choice([8, 16, 24])
    return transformers.ElectraConfig(
        vocab_size=rng.randint(40, 300),
        embedding_size=rng.choice([hidden, 12, 32]),
        hidden_size=hidden,
        num_hidden_layers=rng.randint(1, 4),
        num_attention_heads=heads,
        intermediate_size=rng.choice([16, 40, 96]),
        hidden_act=rng.choice(["gelu", "gelu_new", "relu", "silu"]),
        max_position_embeddings=rng.randint(24, 64),
        layer_norm_eps=rng.choice([1e-12, 1e-5]),
        initializer_range=rng.choice([0.02, 0.1, 0.3]),
        tie_word_embeddings=rng.random() < 0.7,
        num_labels=rng.randint(2, 5),
        pad_token_id=0,
        attn_implementation="eager",
    )


def roberta_config(rng):
    import transformers

    heads = rng.choice([1, 2, 4])
    return transformers.RobertaConfig(
        vocab_size=rng.randint(40, 300),
        hidden_size=heads * rng.choice([8, 16, 24]),
        num_hidden_layers=rng.randint(1, 4),
        num_attention_heads=heads,
        intermediate_size=rng.choice([16, 40, 96]),
        hidden_act=rng.choice(["gelu", "gelu_new", "relu", "silu"]),
        max_position_embeddings=rng.randint(26, 64),
        type_vocab_size=1,
        layer_norm_eps=rng.choice([1e-12, 1e-5]),
        initializer_range=rng.choice([0.02, 0.1, 0.3]),
        tie_word_embeddings=rng.random() < 0.7,
        num_labels=rng.randint(2, 5),
        pad_token_id=1,
        attn_implementation="eager",
    )


def vit_config(rng):
    import transformers

    heads, patch = rng.choice([1, 2, 4]), rng.choice([2, 4, 7])
    return transformers.ViTConfig(
        hidden_size=heads * rng.choice([8, 16, 24]),
        num_hidden_layers=rng.randint(1, 4),
        num_attention_heads=heads,
        intermediate_size=rng.choice([16, 40, 96]),
        hidden_act=rng.choice(["gelu", "gelu_new", "relu", "silu"]),
        image_size=patch * rng.randint(2, 5),
        patch_size=patch,
        num_channels=rng.choice([1, 3]),
        layer_norm_eps=rng.choice([1e-12, 1e-5]),
        initializer_range=rng.choice([0.02, 0.1, 0.3]),
        qkv_bias=rng.random() < 0.7,
        num_labels=rng.randint(2, 5),
        attn_implementation="eager",
    )


def deberta_sizes(rng):
    """What both versions call by the same names."""
    heads = rng.choice([1, 2, 4])
    hidden = heads * rng.choice([8, 16, 24])
    return dict(
        vocab_size=rng.randint(40, 300),
        hidden_size=hidden,
        num_hidden_layers=rng.randint(1, 4),
        num_attention_heads=heads,
        intermediate_size=rng.choice([16, 40, 96]),
        hidden_act=rng.choice(["gelu", "gelu_new", "relu", "silu"]),
        max_position_embeddings=rng.randint(24, 64),
        type_vocab_size=rng.choice([0, 2]),
        layer_norm_eps=rng.choice([1e-7, 1e-5]),
        initializer_range=rng.choice([0.02, 0.1, 0.3]),
        relative_attention=rng.random() < 0.9,
        max_relative_positions=rng.choice([-1, 8, 24]),
        position_biased_input=rng.random() < 0.5,
        pos_att_type=rng.choice([["c2p", "p2c"], ["c2p"], ["p2c"], "p2c|c2p"]),
        num_labels=rng.randint(2, 5),
        pad_token_id=0,
        attn_implementation="eager",
    )


def deberta_config(rng):
    import transformers

    return transformers.DebertaConfig(**deberta_sizes(rng))


def deberta_v2_config(rng):
    import transformers

    sizes = deberta_sizes(rng)
    sizes["max_relative_positions"] = rng.choice([-1, 24])  # more than half of the buckets
    return transformers.DebertaV2Config(
        position_buckets=rng.choice([-1, 8, 16]),
        share_att_key=rng.random() < 0.5,
        norm_rel_ebd=rng.choice(["none", "layer_norm"]),
        **sizes,
    )


def rope(rng, positions):
    """Parameters of rotary positions, of the kinds that are common."""
    base = {"rope_theta": rng.choice([10000.0, 500000.0])}
    kind = rng.choice(["default", "linear", "llama3"])
    if kind == "linear":
        base["factor"] = rng.choice([2.0, 4.0])
    if kind == "llama3":
        base.update(
            factor=8.0,
            low_freq_factor=1.0,
            high_freq_factor=4.0,
            original_max_position_embeddings=positions // 2,
        )
    return {"rope_type": kind, **base}


def decoder_sizes(rng):
    """What Llama, Mistral and Qwen2 call by the same names."""
    groups, kv_heads = rng.choice([1, 2, 4]), rng.choice([1, 2])
    heads = groups * kv_heads
    vocabulary, positions = rng.randint(40, 300), rng.choice([32, 48, 64])
    return dict(
        vocab_size=vocabulary,
        hidden_size=heads * rng.choice([8, 16]),
        num_hidden_layers=rng.randint(1, 3),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        intermediate_size=rng.choice([24, 40, 96]),
        hidden_act=rng.choice(["silu", "silu", "gelu", "relu"]),
        max_position_embeddings=positions,
        rms_norm_eps=rng.choice([1e-5, 1e-6]),
        initializer_range=rng.choice([0.02, 0.1, 0.3]),
        tie_word_embeddings=rng.random() < 0.5,
        rope_parameters=rope(rng, positions),
        num_labels=rng.randint(2, 5),
        pad_token_id=vocabulary - 1,
        bos_token_id=1,
        eos_token_id=2,
        attn_implementation="eager",
    )


def llama_config(rng):
    import transformers

    sizes = decoder_sizes(rng)
    if rng.random() < 0.3:
        sizes["head_dim"] = rng.choice([4, 12, 20])
    return transformers.LlamaConfig(
        attention_bias=rng.random() < 0.4, mlp_bias=rng.random() < 0.3, **sizes
    )


def mistral_config(rng):
    import transformers

    sizes = decoder_sizes(rng)
    if rng.random() < 0.3:
        sizes["head_dim"] = rng.choice([4, 12, 20])
    return transformers.MistralConfig(sliding_window=rng.choice([None, 4096]), **sizes)


def qwen2_config(rng):
    import transformers

    return transformers.Qwen2Config(**decoder_sizes(rng))


def resnet_config(rng):
    import transformers

    kind = rng.choice(["basic", "bottleneck"])
    stages = rng.randint(1, 4)
    return transformers.ResNetConfig(
        num_channels=rng.choice([1, 3]),
        embedding_size=rng.choice([4, 8, 16]),
        hidden_sizes=[rng.choice([8, 16, 24, 32]) for _ in range(stages)],
        depths=[rng.randint(1, 3) for _ in range(stages)],
        layer_type=kind,
        hidden_act=rng.choice(["relu", "relu", "silu", "gelu"]),
        downsample_in_first_stage=rng.random() < 0.3,
        downsample_in_bottleneck=rng.random() < 0.3,
        num_labels=rng.randint(2, 6),
        image_size=[rng.randint(40, 70), rng.randint(40, 70)],
    )


def families():
    import transformers

    return {
        "resnet": (
            resnet_config,
            [
                transformers.ResNetForImageClassification,
                transformers.ResNetForImageClassification,
                transformers.ResNetModel,
            ],
        ),
        "llama": (
            llama_config,
            [
                transformers.LlamaForCausalLM,
                transformers.LlamaForSequenceClassification,
                transformers.LlamaModel,
            ],
        ),
        "mistral": (
            mistral_config,
            [
                transformers.MistralForCausalLM,
                transformers.MistralForSequenceClassification,
                transformers.MistralModel,
            ],
        ),
        "qwen2": (
            qwen2_config,
            [
                transformers.Qwen2ForCausalLM,
                transformers.Qwen2ForSequenceClassification,
                transformers.Qwen2Model,
            ],
        ),
        "distilbert": (
            distilbert_config,
            [
                transformers.DistilBertForSequenceClassification,
                transformers.DistilBertForTokenClassification,
                transformers.DistilBertForMaskedLM,
                transformers.DistilBertModel,
            ],
        ),
        "roberta": (
            roberta_config,
            [
                transformers.RobertaForSequenceClassification,
                transformers.RobertaForTokenClassification,
                transformers.RobertaForMaskedLM,
                transformers.RobertaModel,
            ],
        ),
        "electra": (
            electra_config,
            [
                transformers.ElectraForSequenceClassification,
                transformers.ElectraForTokenClassification,
                transformers.ElectraForMaskedLM,
                transformers.ElectraModel,
            ],
        ),
        "bert": (
            bert_config,
            [
                transformers.BertForSequenceClassification,
                transformers.BertForTokenClassification,
                transformers.BertForMaskedLM,
                transformers.BertModel,
            ],
        ),
        "vit": (vit_config, [transformers.ViTForImageClassification, transformers.ViTModel]),
        "deberta": (
            deberta_config,
            [
                transformers.DebertaForSequenceClassification,
                transformers.DebertaForTokenClassification,
                transformers.DebertaModel,
            ],
        ),
        "deberta-v2": (
            deberta_v2_config,
            [
                transformers.DebertaV2ForSequenceClassification,
                transformers.DebertaV2ForTokenClassification,
                transformers.DebertaV2Model,
            ],
        ),
        "gpt2": (
            gpt2_config,
            [
                transformers.GPT2LMHeadModel,
                transformers.GPT2ForSequenceClassification,
                transformers.GPT2Model,
            ],
        ),
    }


def shake(model, generator):
    """Gives biases and norms values of their own: transformers starts them at zero and one."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))


TORCHVISION_NAMES = [
    (r"^resnet\.embedder\.embedder\.convolution\.", "conv1."),
    (r"^resnet\.embedder\.embedder\.normalization\.", "bn1."),
    (r"^classifier\.1\.", "fc."),
    (r"shortcut\.convolution\.", "downsample.0."),
    (r"shortcut\.normalization\.", "downsample.1."),
]


def torchvision_name(name):
    """What torchvision calls a tensor of transformers' ResNet."""
    import re

    def counted(match):
        stage, part, rest = match.groups()
        inner = re.match(r"layer\.(\d+)\.(convolution|normalization)\.", rest)
        if inner:
            kind = "conv" if inner.group(2) == "convolution" else "bn"
            rest = f"{kind}{int(inner.group(1)) + 1}." + rest[inner.end() :]
        return f"layer{int(stage) + 1}.{part}.{rest}"

    for pattern, replacement in TORCHVISION_NAMES:
        name = re.sub(pattern, replacement, name)
    return re.sub(r"^resnet\.encoder\.stages\.(\d+)\.layers\.(\d+)\.(.*)$", counted, name)


def random_model(family, index, seed):
    """A model of random sizes and weights, and what to draw the rest from."""
    rng = random.Random(f"{family}/{seed}/{index}")
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    torch.manual_seed(rng.randrange(2**31))
    config_of, classes = families()[family]
    config = config_of(rng)
    model = classes[index % len(classes)](config).eval()
    shake(model, generator)
    return rng, generator, config, model


def make_images(family, index, out, seed):
    """The same for a family that reads images, with running statistics of its own."""
    rng, generator, config, model = random_model(family, index, seed)
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(0.5 * torch.randn(buffer.shape, generator=generator))
            if name.endswith("running_var"):
                buffer.copy_(0.5 + torch.rand(buffer.shape, generator=generator))
    rows = rng.randint(1, 3)
    pixels = torch.randn((rows, config.num_channels, *config.image_size), generator=generator)
    with torch.no_grad():
        result = model(pixel_values=pixels)
    name = "logits" if "logits" in result else "last_hidden_state"
    directory = out / f"{family}-{index}-{type(model).__name__}"
    model.save_pretrained(directory)
    if index % 3 == 1:
        (directory / "model.safetensors").unlink()
        tensors = {torchvision_name(key): value for key, value in model.state_dict().items()}
        torch.save(tensors, directory / "pytorch_model.bin")
    save_file({"pixel_values": pixels}, directory / "inputs.safetensors")
    save_file({name: result[name].contiguous()}, directory / "expected.safetensors")
    print(directory, config.layer_type, config.depths, tuple(pixels.shape), f"{result[name].std():.3f}")


def reopen(out, tolerance):
    """Opens what `lathe export` wrote in transformers and compares its answers."""
    import transformers

    worst = 0.0
    for directory in sorted(path for path in out.iterdir() if path.is_dir()):
        kind = directory.name.rsplit("-", 1)[1]
        model, loading = getattr(transformers, kind).from_pretrained(
            directory / "exported", output_loading_info=True
        )
        wrong = [key for key in loading["missing_keys"] if "num_batches_tracked" not in key]
        wrong += list(loading["unexpected_keys"])
        if wrong:
            print(f"{directory.name}: {wrong[:4]}")
            worst = float("inf")
        name, found = answer(model.eval(), load_file(directory / "inputs.safetensors"))
        for name, value in load_file(directory / "expected.safetensors").items():
            difference = (found - value).abs().max().item()
            worst = max(worst, difference)
            print(f"{directory.name:45} {name:18} {difference:.2e}")
    print(f"largest difference {worst:.2e}")
    return 0 if worst <= tolerance else 1


def text_inputs(rng, generator, config):
    rows, length = rng.randint(1, 4), rng.randint(2, 20)
    lengths = [length] + [rng.randint(1, length) for _ in range(rows - 1)]
    # Every id but that of padding, which marks where a classifier looks for the last token.
    choices = [i for i in range(config.vocab_size) if i != config.pad_token_id]
    ids = torch.full((rows, length), config.pad_token_id, dtype=torch.int64)
    mask = torch.zeros((rows, length), dtype=torch.int64)
    for row, count in enumerate(lengths):
        ids[row, :count] = torch.tensor([rng.choice(choices) for _ in range(count)])
        mask[row, :count] = 1
    return {"input_ids": ids, "attention_mask": mask}


def image_inputs(rng, generator, config):
    shape = (rng.randint(1, 4), config.num_channels, config.image_size, config.image_size)
    return {"pixel_values": torch.randn(shape, generator=generator)}


def without_padding(value, inputs):
    """What stands at padding means nothing."""
    if value.dim() == 3 and "attention_mask" in inputs:
        return value * inputs["attention_mask"][:, :, None]
    return value


def answer(model, inputs):
    with torch.no_grad():
        result = model(**inputs)
    name = "logits" if "logits" in result else "last_hidden_state"
    return name, without_padding(result[name], inputs)


def make(family, index, out, seed):
    rng, generator, config, model = random_model(family, index, seed)
    stored = torch.bfloat16 if rng.random() < 0.3 else torch.float32
    with torch.no_grad():  # answers in float, from what the file will hold; buffers are not stored
        for parameter in model.parameters():
            parameter.copy_(parameter.to(stored))
    inputs = (image_inputs if family == "vit" else text_inputs)(rng, generator, config)
    name, expected = answer(model, inputs)
    directory = out / f"{family}-{index}-{type(model).__name__}"
    shards = {"max_shard_size": "24KB"} if rng.random() < 0.3 else {}
    model.to(stored).save_pretrained(directory, **shards)
    save_file(inputs, directory / "inputs.safetensors")
    save_file({name: expected.contiguous()}, directory / "expected.safetensors")
    print(directory, type(model).__name__, [list(x.shape) for x in inputs.values()])


def continuations(family, index, out, seed, num_prompts=5, num_tokens=64):
    """Writes a causal model and the tokens that greedy decoding appends to prompts of ids."""
    rng = random.Random(f"greedy/{family}/{seed}/{index}")
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    torch.manual_seed(rng.randrange(2**31))
    config_of, classes = families()[family]
    causal = next(c for c in classes if "CausalLM" in c.__name__ or "LMHead" in c.__name__)
    config = config_of(rng)
    setattr(config, "n_positions" if family == "gpt2" else "max_position_embeddings", 128)
    model = causal(config).eval()
    shake(model, generator)
    model.generation_config.eos_token_id = None
    rows = []
    for _ in range(num_prompts):
        prompt = [rng.randrange(config.vocab_size) for _ in range(rng.randint(1, 24))]
        with torch.no_grad():
            ids = torch.tensor([prompt])
            result = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=num_tokens,
                do_sample=False,
                eos_token_id=None,
                return_dict_in_generate=True,
                output_logits=True,
            )
        best = torch.stack(result.logits)[:, 0].topk(2).values
        rows.append(
            {
                "prompt": prompt,
                "tokens": result.sequences[0, len(prompt) :].tolist(),
                "smallest_lead": (best[:, 0] - best[:, 1]).min().item(),
            }
        )
    directory = out / f"greedy-{family}-{index}"
    model.save_pretrained(directory)
    (directory / "greedy.json").write_text(json.dumps(rows))
    print(directory, [(len(row["tokens"]), row["smallest_lead"]) for row in rows])


def compare(out, tolerance):
    worst = 0.0
    for directory in sorted(path for path in out.iterdir() if path.is_dir()):
        expected = load_file(directory / "expected.safetensors")
        inputs = load_file(directory / "inputs.safetensors")
        outputs = load_file(directory / "outputs.safetensors")
        for name, value in expected.items():
            difference = (without_padding(outputs[name], inputs) - value).abs().max().item()
            worst = max(worst, difference)
            print(f"{directory.name:50} {name:18} {difference:.2e}  of {value.abs().max():.3f}")
    print(f"largest difference {worst:.2e}")
    return 0 if worst <= tolerance else 1


def compare_continuations(out, lathe, devices):
    """Counts the prompts behind which our program puts other tokens, on each device."""
    failed = 0
    for directory in sorted(path for path in out.iterdir() if (path / "greedy.json").exists()):
        rows = json.loads((directory / "greedy.json").read_text())
        for device in devices:
            command = [lathe, "generate", "--model", str(directory), "--json", "--ignore-end", "--device", device,
                       "--max-new-tokens", str(len(rows[0]["tokens"]))]
            for row in rows:
                command += ["--prompt-ids", ",".join(map(str, row["prompt"]))]
            done = subprocess.run(command, capture_output=True, text=True)
            ours = [json.loads(line)["tokens"] for line in done.stdout.splitlines()]
            equal = sum(mine == row["tokens"] for mine, row in zip(ours, rows))
            failed += len(rows) - equal
            print(f"{directory.name:24} {device:5} {equal} of {len(rows)} prompts equal, {len(rows[0]['tokens'])} tokens "
                  f"each, smallest lead {min(row['smallest_lead'] for row in rows):.1e} {done.stderr.strip()[-200:]}",
                  flush=True)
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--family", choices=sorted(families()), default="gpt2")
    parser.add_argument("--greedy", action="store_true", help="write continuations of prompts")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("rivals"))
    parser.add_argument("--compare", type=pathlib.Path, help="directory of models that were run")
    parser.add_argument("--continue", dest="continued", type=pathlib.Path, help="directory of --greedy models")
    parser.add_argument("--lathe", default="lathe")
    parser.add_argument("--devices", default="cpu,cuda")
    parser.add_argument("--reopen", type=pathlib.Path, help="directory of models that were exported")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    arguments = parser.parse_args()
    if arguments.continued:
        sys.exit(compare_continuations(arguments.continued, arguments.lathe, arguments.devices.split(",")))
    if arguments.compare:
        sys.exit(compare(arguments.compare, arguments.tolerance))
    if arguments.reopen:
        sys.exit(reopen(arguments.reopen, arguments.tolerance))
    write = make_images if arguments.family == "resnet" else make
    if arguments.greedy:
        write = continuations
    for index in range(arguments.count):
        write(arguments.family, index, arguments.out, arguments.seed)


if __name__ == "__main__":
    main()
