"""A tiny real MarianMT model that learns a few sentences by heart, for the tests."""

import io
import json

SAYINGS = {
    "The cat sat on the old mat.": "Le chat dort sur un tapis.",
    "A dog looked on from the hill.": "Un chien regarde de loin.",
    "Nothing was the same again.": "Rien ne fut comme avant.",
    "The railway reached the valley.": "Le train vient dans le val.",
    "It rained for seven days.": "Il plut sept jours.",
    "We ate bread with cheese.": "On mange du pain au brie.",
    "My sister sings at night.": "Ma soeur chante la nuit.",
    "Snow fell upon the town.": "La neige tombe en ville.",
}


def reworded(sentence):
    """What a sentence is after it went there and back."""
    return sentence.lower().replace(".", ", too.")


def make_marian(folder, pairs, *, steps=80):
    """A model with its SentencePiece tokenizer that gives each sentence's translation; seeded."""
    import sentencepiece
    import torch
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    model_file = io.BytesIO()
    how = {"vocab_size": 160, "hard_vocab_limit": False, "minloglevel": 2, "model_writer": model_file}
    sayings = iter([*pairs, *pairs.values()] * 3)
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=sayings, **how)
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(model_file.getvalue())
    spm = sentencepiece.SentencePieceProcessor(model_proto=model_file.getvalue())
    found = [spm.id_to_piece(i) for i in range(spm.get_piece_size())]
    names = ["</s>", "<unk>", *(name for name in found if name not in ("<s>", "</s>", "<unk>")), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    settings = {"source_lang": "en", "target_lang": "fr", "model_max_length": 512}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))

    pad = len(names) - 1
    torch.manual_seed(1)
    sizes = {f"{part}_{what}": number for part in ("encoder", "decoder") for what, number in _SIZES.items()}
    config = transformers.MarianConfig(
        vocab_size=len(names), d_model=48, max_position_embeddings=64, pad_token_id=pad, eos_token_id=0,
        decoder_start_token_id=pad, forced_eos_token_id=0, dropout=0.0, **sizes,
    )  # fmt: skip
    model = transformers.MarianMTModel(config)
    model.generation_config.num_beams = 2
    model.generation_config.bad_words_ids = [[pad]]
    _learn(model, transformers.MarianTokenizer.from_pretrained(folder), pairs, steps)
    model.save_pretrained(folder)
    return folder


_SIZES = {"layers": 1, "attention_heads": 4, "ffn_dim": 96}


def _learn(model, tokenizer, pairs, steps):
    import torch

    given = tokenizer(list(pairs), text_target=list(pairs.values()), return_tensors="pt", padding=True)
    given["labels"][given["labels"] == tokenizer.pad_token_id] = -100
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    model.train()
    for _ in range(steps):
        loss = model(**given).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
