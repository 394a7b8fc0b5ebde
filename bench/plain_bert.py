"""BERT classifiers of PyTorch's own modules, for rival scripts where transformers is not installed.

Debian packages PyTorch and onnxruntime, but not transformers. This has the few names of it that the
scripts use for models with made-up weights: the same layers, tensors and sizes, attention by
`scaled_dot_product_attention` (or written out, for exporters that know no such op).
"""

import json
import os
import types

import torch
from torch import nn
from torch.nn import functional

__version__ = "absent: BERT of torch.nn"
WEIGHT_DEVIATION = 0.02


class BertConfig:
    """Sizes of BERT-base, or those given."""

    def __init__(self, **sizes):
        self.values = {"architectures": ["BertForSequenceClassification"], "model_type": "bert",
                       "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12,
                       "num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu",
                       "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
                       "max_position_embeddings": 512, "type_vocab_size": 2,
                       "layer_norm_eps": 1e-12, "pad_token_id": 0, **sizes}

    def __getattr__(self, name):
        return self.__dict__["values"][name]


class Embeddings(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, width)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        sums = self.word_embeddings(ids) + self.token_type_embeddings.weight[0]
        return self.dropout(self.LayerNorm(sums + self.position_embeddings(places)))


class SelfAttention(nn.Module):
    def __init__(self, config, written_out):
        super().__init__()
        width = config.hidden_size
        self.heads, self.rate = config.num_attention_heads, config.attention_probs_dropout_prob
        self.written_out = written_out
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x, mask):
        def by_heads(y):
            return y.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        q, k, v = (by_heads(layer(x)) for layer in (self.query, self.key, self.value))
        rate = self.rate if self.training else 0.0
        if self.written_out:
            scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
            weights = functional.softmax(scores if mask is None else scores + mask, dim=-1)
            y = functional.dropout(weights, rate, self.training) @ v
        else:
            y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=rate)
        return y.transpose(1, 2).flatten(2)


class AddAndNorm(nn.Module):
    def __init__(self, config, inputs):
        super().__init__()
        self.dense = nn.Linear(inputs, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, y, x):
        return self.LayerNorm(self.dropout(self.dense(y)) + x)


class Layer(nn.Module):
    def __init__(self, config, written_out):
        super().__init__()
        self.attention = nn.ModuleDict({"self": SelfAttention(config, written_out),
                                        "output": AddAndNorm(config, config.hidden_size)})
        self.intermediate = nn.ModuleDict(
            {"dense": nn.Linear(config.hidden_size, config.intermediate_size)})
        self.output = AddAndNorm(config, config.intermediate_size)

    def forward(self, x, mask):
        x = self.attention["output"](self.attention["self"](x, mask), x)
        return self.output(functional.gelu(self.intermediate["dense"](x)), x)


class Classifier(nn.Module):
    def __init__(self, config, written_out=False):
        super().__init__()
        self.config = config
        width = config.hidden_size
        self.bert = nn.ModuleDict({
            "embeddings": Embeddings(config),
            "encoder": nn.ModuleDict({"layer": nn.ModuleList(
                Layer(config, written_out) for _ in range(config.num_hidden_layers))}),
            "pooler": nn.ModuleDict({"dense": nn.Linear(width, width)})})
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(width, 2)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=WEIGHT_DEVIATION)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, input_ids, attention_mask=None, labels=None):
        mask = None
        # Full rows need no mask, and are faster without; an exporter has to keep it.
        if attention_mask is not None and (torch.jit.is_tracing() or not attention_mask.all()):
            hidden = 1.0 - attention_mask[:, None, None, :].to(torch.float32)
            mask = hidden * torch.finfo(torch.float32).min
        x = self.bert["embeddings"](input_ids)
        for layer in self.bert["encoder"]["layer"]:
            x = layer(x, mask)
        first = torch.tanh(self.bert["pooler"]["dense"](x[:, 0]))
        logits = self.classifier(self.dropout(first))
        loss = None if labels is None else functional.cross_entropy(logits, labels)
        return types.SimpleNamespace(logits=logits, loss=loss)

    def save_pretrained(self, folder):
        from safetensors.torch import save_file

        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(self.config.values, file)
        save_file({name: tensor.contiguous() for name, tensor in self.state_dict().items()},
                  os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})


class AutoModelForSequenceClassification:
    @staticmethod
    def from_config(config, attn_implementation=None):
        return Classifier(config, written_out=attn_implementation == "eager")

    @staticmethod
    def from_pretrained(name, attn_implementation=None):
        from safetensors.torch import load_file

        with open(os.path.join(name, "config.json")) as file:
            model = Classifier(BertConfig(**json.load(file)), attn_implementation == "eager")
        model.load_state_dict(load_file(os.path.join(name, "model.safetensors")))
        return model


def set_seed(seed):
    torch.manual_seed(seed)
