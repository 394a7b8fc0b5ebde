"""Random configurations of each family, as Hugging Face's transformers takes them, and its classes for their tasks."""


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
    legacy = rng.random() < 0.8
    return dict(
        vocab_size=rng.randint(40, 300),
        hidden_size=hidden,
        num_hidden_layers=rng.randint(1, 4),
        num_attention_heads=heads,
        intermediate_size=rng.choice([16, 40, 96]),
        hidden_act=rng.choice(["gelu", "gelu_new", "relu", "silu"]),
        max_position_embeddings=rng.randint(24, 64),
        legacy=legacy,
        embedding_size=rng.choice([hidden, hidden, 12]) if legacy else hidden,
        type_vocab_size=rng.choice([0, 2]),
        layer_norm_eps=rng.choice([1e-7, 1e-5]),
        initializer_range=rng.choice([0.02, 0.1, 0.3]),
        relative_attention=rng.random() < 0.9,
        max_relative_positions=rng.choice([-1, 8, 24]),
        position_biased_input=rng.random() < 0.5,
        pos_att_type=rng.choice([["c2p", "p2c"], ["c2p"], ["p2c"], "p2c|c2p", []]),
        pooler_hidden_act=rng.choice(["gelu", "tanh", "relu"]),
        tie_word_embeddings=legacy and rng.random() < 0.7,  # transformers cannot open the newer head tied
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
    sizes["max_relative_positions"] = rng.choice([-1, 12, 24])  # more than half of the buckets
    # A norm of distances that nobody scores has states that nobody reads.
    norms = ["none", "layer_norm"] if sizes["relative_attention"] else ["none"]
    return transformers.DebertaV2Config(
        position_buckets=rng.choice([-1, 8, 16]),
        share_att_key=rng.random() < 0.5,
        norm_rel_ebd=rng.choice(norms),
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


def torchvision_resnet(rng, config=None):
    """One of torchvision's ResNets, random or that of a configuration, and the configuration that says the same."""
    import torchvision
    import transformers

    kinds = {"basic": torchvision.models.resnet.BasicBlock, "bottleneck": torchvision.models.resnet.Bottleneck}
    if config is None:
        kind = rng.choice(sorted(kinds))
        config = transformers.ResNetConfig(
            embedding_size=64,
            hidden_sizes=[width * kinds[kind].expansion for width in (64, 128, 256, 512)],
            depths=[rng.randint(1, 2) for _ in range(4)],
            layer_type=kind,
            num_labels=rng.randint(2, 6),
            image_size=[rng.randint(40, 70), rng.randint(40, 70)],
            architectures=["ResNetForImageClassification"],
        )
    block = kinds[config.layer_type]
    return config, torchvision.models.resnet.ResNet(block, config.depths, num_classes=config.num_labels)


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
                transformers.DebertaForMaskedLM,
                transformers.DebertaModel,
            ],
        ),
        "deberta-v2": (
            deberta_v2_config,
            [
                transformers.DebertaV2ForSequenceClassification,
                transformers.DebertaV2ForTokenClassification,
                transformers.DebertaV2ForMaskedLM,
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
