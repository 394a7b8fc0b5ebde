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

from family_configs import families


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
