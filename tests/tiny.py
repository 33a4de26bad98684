"""Tiny real models of several families, for the tests."""

import functools

SENTENCES = [
    "The cat sat on the mat, and the dog looked on.",
    "In 1869 the railway reached the valley; nothing was the same again.",
    "def parse(text): return text.split(',')  # naive",
    "Ärger über Öl – naïve café, 東京 and 🙂 too.",
    "one two three four five six seven eight nine ten eleven twelve",
    "Whoever wrote THIS in CAPITALS must have been ANGRY at 3:45 pm.",
]

WORDS = [
    "cat", "dog", "mat", "railway", "valley", "Nothing", "same", "again", "Parse", "Café", "one", "FOUR",
    "six",
]  # fmt: skip
MORE_WORDS = [
    "the", "cat", "sat", "on", "a", "mat", "one", "two", "railway", "Nothing", "WHOEVER", "naïve", "3:45",
]  # fmt: skip
"""Words to draw made-up texts from: capitals, an accent and numbers among them."""
RECURRENT = 1e-3  # nats between two float32 sums of a recurrence: each is up to 4e-4 from the same in float64


def make_tokenizer(*, start=False):
    """A byte-level BPE of 400 tokens; with `start` it puts <s> in front by itself, as Llama's does."""
    import tokenizers
    from transformers import PreTrainedTokenizerFast

    rust = tokenizers.Tokenizer.from_str(_trained(start))
    return PreTrainedTokenizerFast(tokenizer_object=rust, bos_token="<s>", eos_token="</s>")


def pieces_tokenizer(names, merges=()):
    """A tokenizer of Llama's kind: a space is part of the next word and lost at the start of a text, and what is
    unknown is written in bytes."""
    from tokenizers import Tokenizer, decoders, models, normalizers

    vocabulary = {name: i for i, name in enumerate(names)}
    made = Tokenizer(models.BPE(vocabulary, list(merges), unk_token="<unk>", byte_fallback=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    made.decoder = decoders.Sequence(steps)
    return made


@functools.cache
def _trained(start):
    """The tokenizer as JSON, trained once a process."""
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers, processors, trainers

    rust = tokenizers.Tokenizer(models.BPE())
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = decoders.ByteLevel()
    how = {"special_tokens": ["<s>", "</s>"], "show_progress": False}
    how["initial_alphabet"] = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, **how)
    rust.train_from_iterator(SENTENCES * 3, trainer)
    if start:
        rust.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", rust.token_to_id("<s>"))]
        )
    return str(rust.to_str())


def opened(model="gpt_neox", tokenizer=None, *, start=None, weights="w" * 64, **how):
    """A back end over a tiny model, given by its family or ready made. `start` is whether the tokenizer puts a start
    token in front; with a `tokenizer` it is the setting, as `how` holds the others."""
    from net.api import HuggingFace, ModelSettings

    name = model if isinstance(model, str) else "tiny"
    if tokenizer is None:
        tokenizer, start = make_tokenizer(start=bool(start)), None
    settings = ModelSettings(**how, **({"start": start} if start else {}))
    model = make_model(name) if name == model else model
    return HuggingFace(model, tokenizer, name=name, weights=weights, settings=settings)


def make_model(family, vocabulary=416):
    """A seeded random model of a family: a few thousand weights, but the family's real code.

    The logits table is larger than the tokenizer's vocabulary, as Pythia's is.
    """
    import torch
    import transformers as t

    torch.manual_seed(7)
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": vocabulary}
    inner = {"intermediate_size": 48, "max_position_embeddings": 256}
    configs = {
        "gpt_neox": lambda: t.GPTNeoXConfig(**size, **inner),
        "llama": lambda: t.LlamaConfig(**size, **inner, num_key_value_heads=2),
        "opt": lambda: t.OPTConfig(
            **size, ffn_dim=48, max_position_embeddings=256, word_embed_proj_dim=16, pad_token_id=1
        ),
        "gemma3_text": lambda: t.Gemma3TextConfig(
            **size, **inner, num_key_value_heads=2, head_dim=8, sliding_window=16
        ),
        "granite": lambda: t.GraniteConfig(**size, **inner, num_key_value_heads=2, logits_scaling=4.0),
        "gemma2": lambda: t.Gemma2Config(
            **size, **inner, num_key_value_heads=2, head_dim=8, final_logit_softcapping=0.5
        ),
        "gpt2": lambda: t.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=256, vocab_size=vocabulary),
        "bloom": lambda: t.BloomConfig(hidden_size=32, n_layer=2, n_head=4, vocab_size=vocabulary),
        "gptj": lambda: t.GPTJConfig(
            n_embd=32, n_layer=2, n_head=4, n_positions=256, rotary_dim=4, vocab_size=vocabulary
        ),
        "falcon": lambda: t.FalconConfig(**size),
        "mamba": lambda: t.MambaConfig(
            hidden_size=32, num_hidden_layers=2, state_size=4, vocab_size=vocabulary
        ),
        "mixtral": lambda: t.MixtralConfig(**size, **inner, num_key_value_heads=2, num_local_experts=4),
        "qwen3": lambda: t.Qwen3Config(**size, **inner, num_key_value_heads=2, head_dim=8),
        "recurrent_gemma": lambda: t.RecurrentGemmaConfig(
            **size, intermediate_size=48, num_key_value_heads=2, attention_window_size=16, lru_width=32
        ),
    }
    model = t.AutoModelForCausalLM.from_config(configs[family]())
    with torch.no_grad():  # fresh weights are so small that every prediction would be uniform
        for parameter in model.parameters():
            parameter.mul_(4.0)
    return model.eval()


def read(backend, texts, want=None, *states, store=None, **how):
    """Traces of texts, nothing of them kept: of log-probabilities unless told otherwise."""
    from net.api import Quantity, Traces, trace

    wanted = Quantity.LOGP if want is None else want
    return trace(backend, texts, wanted, frozenset(states), store=store or Traces(None), **how)


def naive_logp(model, ids, first=1):
    """Float64 log-probabilities of the token ids from place `first` on, by one whole pass of the model alone."""
    import torch

    with torch.inference_mode():
        rows = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, :-1].double().log_softmax(-1)
    return rows.gather(1, torch.tensor(ids)[1:, None])[first - 1 :, 0].numpy()


def stop_at(step):
    """An `on_step` that stops a training there, as Ctrl-C does."""

    def on_step(progress):
        if progress.step == step:
            raise KeyboardInterrupt

    return on_step
