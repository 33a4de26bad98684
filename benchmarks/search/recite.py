"""What `recite` computes and finds: p by one pass beside counted samples, and recitation by number of copies.

    python -m benchmarks.search.recite p        # chances of windows against 2,000 samples
    python -m benchmarks.search.recite copies   # a model trained on texts at 1, 4, 16, 64 copies: scores and the test
    python -m benchmarks.search.recite nulls    # boilerplate, verse, code, licences, dates, famous texts: none was read

All go on where they were stopped: what is there in benchmarks/results/recite.json is not made again. `--model` names
another model for `p` than the packaged one, `--windows` and `--samples` change its size, `--worlds` that of `copies`,
`--runs` that of `nulls`, and `--kinds` which of them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats
import torch

from benchmarks import RESULTS
from benchmarks.machine import commit, machine
from pretrace import open_corpus, open_model
from pretrace.backends.huggingface import HuggingFace
from pretrace.backends.settings import ModelSettings
from pretrace.errors import TextsError
from pretrace.results.atomic import atomic_text
from pretrace.scores.extraction import tries_for, window_logp
from pretrace.scoring.evidence import Want, open_store, trace
from pretrace.scoring.plan import Models
from pretrace.statistics.intervals import share_interval
from pretrace.types import Corpus, Drawn, Quantity, Text, Verdict
from pretrace.verdicts.frame import watched
from pretrace.verdicts.recite import Recite, ReciteSettings, recite, score_of

OUT = RESULTS / "recite.json"
DRAWN = Drawn(40, 1.0)
LEVEL = 0.05
PREFIX, SUFFIX = 20, 4
"""Tokens of the windows of `p`: short ends, for which samples can be counted; p > 0.01 is rare at 50 tokens."""


def kept() -> dict[str, Any]:
    """What is there already."""
    return json.loads(OUT.read_text("utf-8")) if OUT.exists() else {}


def keep(part: str, found: dict[str, Any]) -> None:
    """Write a part, the others as they are."""
    atomic_text(
        OUT, json.dumps({**kept(), "machine": machine(), part: found}, indent=1, sort_keys=True) + "\n"
    )


def shared() -> None:
    """Write what nulls and copies gave to results/innocents_recite.json, as `benchmarks.designs.table` reads it."""
    found, rows = kept(), []
    own = {"test": "recite", "how": "tiny models"}
    for kind, one in found.get("nulls", {}).get("counts", {}).items():
        if one["of"]:
            counts = {"runs": one["of"], "rejected": one["rejected"], "accused": one["accused"]}
            rows.append({**own, "kind": kind, **counts, "members": None, "before": None})
    for name, one in found.get("copies", {}).get("counts", {}).items():
        number, _, how = name.partition(" ")
        counts = {"runs": one["of"], "rejected": one["rejected"], "accused": one["accused"]}
        if number == "never,":
            rows.append({**own, "kind": f"never read, {how}", **counts, "members": None, "before": None})
            continue
        members = {"kind": name, "runs": one["of"], "found": one["accused"], "units": DOCUMENTS}
        members |= {"copies": int(number)} if how == "copies, weights" else {}
        none = {"runs": 0, "rejected": 0, "accused": 0}
        rows.append({**own, "kind": name, **none, "members": members, "before": None})
    answers = found.get("answers", {})
    for name, one in answers.get("nulls", {}).items():
        test, kind = _test_of(name)
        counts = {"runs": one["of"], "rejected": one["rejected"], "accused": one["accused"]}
        rows.append(
            {**own, "test": test, "kind": f"{kind}, small models", **counts, "members": None, "before": None}
        )
    for name, one in answers.get("read", {}).items():
        test, kind = _test_of(name)
        members = {"kind": kind, "runs": one["of"], "found": one["accused"]}
        none = {"runs": 0, "rejected": 0, "accused": 0}
        rows.append({**own, "test": test, "kind": kind, **none, "members": members, "before": None})
    whole = {"machine": machine(), "commit": commit(), "rows": rows}
    atomic_text(OUT.with_name("innocents_recite.json"), json.dumps(whole, indent=1) + "\n")


def tally(verdicts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How many verdicts rejected and accused, with 95% intervals of both shares."""
    rejected = sum(one["p"] <= LEVEL for one in verdicts)
    accused = sum(one["outcome"] == "consistent" for one in verdicts)
    found: dict[str, Any] = {"of": len(verdicts), "rejected": rejected, "accused": accused}
    for name, hits in (("rejected, 95%", rejected), ("accused, 95%", accused)):
        share = share_interval(hits, len(verdicts))
        found[name] = [round(share.low, 4), round(share.high, 4)]
    return found


def _test_of(name: str) -> tuple[str, str]:
    """The test that a row of the part "answers" counts for, and what is left of its name."""
    what, _, more = name.partition(", ")
    test = what
    if more.endswith(", weights"):
        return test, f"read: {more.removesuffix(', weights')}"
    copies = more.removesuffix(", text alone").removesuffix("text alone")
    return f"{test}, in text", f"read: {copies}" if copies else "never read"


@torch.inference_mode()
def counted(model: HuggingFace, ids: list[int], end: list[int], samples: int, seed: int) -> int:
    """How often samples after the ids are the end, token by token: each is drawn from what transformers' own top-k
    leaves, and only samples that are the end so far go on, so that one row is read for each token."""
    from transformers import TopKLogitsWarper

    torch.manual_seed(seed)
    left = samples
    for i, token in enumerate(end):
        ahead = torch.tensor([ids + end[:i]], device=model.device)
        logits = model.model(input_ids=ahead).logits[:, -1].float() / DRAWN.temperature
        chances = TopKLogitsWarper(DRAWN.k)(ahead, logits).softmax(-1)[0]
        left = int((torch.multinomial(chances, left, replacement=True) == token).sum()) if left else 0
    return left


def by_pass(name: str, windows: int, samples: int) -> None:
    """The chance of windows by the pass, and as counted, for windows whose chance is above 0.01."""
    model = open_model(name)
    assert isinstance(model, HuggingFace)
    texts = [one.text for one in open_corpus("stdlib").texts if 150 < len(one.text) < 500][: 4 * windows]
    want = Want(Quantity.LOGP, frozenset({DRAWN}))
    chosen = []
    with open_store(model.fingerprint) as store:
        read = trace(model, texts, want, store=store)
    for text, one in zip(texts, read, strict=True):
        chances = window_logp(one.states[DRAWN], PREFIX, SUFFIX)
        some = np.flatnonzero((chances > math.log(0.01)) & (chances < math.log(0.9)))
        # one a text: windows that overlap tell the same twice
        if len(some) and len(one) < 300:
            at = int(some[len(text) % len(some)])
            chosen.append((text, at, float(chances[at])))
    rng = np.random.default_rng(24)
    picked = [chosen[i] for i in sorted(rng.permutation(len(chosen))[:windows].tolist())]
    part = kept().get("p", {})
    done = {(row["text"], row["at"]): row for row in part.get("rows", [])}
    rows = []
    for number, (text, at, logp) in enumerate(picked):
        key = (text[:40], at)
        if key not in done:
            encoded = model.encode([text])[0]
            ids = [*encoded.prefix.tolist(), *encoded.tokens.tolist()]
            first = max(1, len(encoded.prefix)) + at + PREFIX
            hits = counted(model, ids[:first], ids[first : first + SUFFIX], samples, number)
            p = math.exp(logp)
            low, high = scipy.stats.binom.ppf([0.025, 0.975], samples, p).tolist()
            done[key] = {"text": key[0], "at": at, "p": p, "hits": hits, "inside": low <= hits <= high}
            done[key]["tries"] = float(tries_for(logp))
        rows.append(done[key])
        z = [
            (row["hits"] - samples * row["p"]) / math.sqrt(samples * row["p"] * (1 - row["p"]))
            for row in rows
        ]
        keep(
            "p",
            {
                "model": name,
                "samples": samples,
                "prefix": f"all before the window, {PREFIX} tokens or more",
                "suffix": SUFFIX,
                "windows": len(rows),
                "inside their 95% interval": int(sum(row["inside"] for row in rows)),
                "mean z": float(np.mean(z)),
                "sum of squares of z, chi2 p": float(
                    scipy.stats.chi2.sf(float(np.sum(np.square(z))), len(z))
                ),
                "rows": rows,
            },
        )
        print(
            f"{number + 1}/{len(picked)}: p {rows[-1]['p']:.4f}, {rows[-1]['hits']} of {samples}", flush=True
        )


COPIES = (1, 4, 16, 64)
DOCUMENTS = 12
"""Documents of each number of copies, and as many controls and others."""


def made_words(rng: np.random.Generator) -> list[str]:
    """Words of made-up syllables."""
    parts = [
        "ba",
        "ke",
        "li",
        "mo",
        "nu",
        "ra",
        "se",
        "ti",
        "vo",
        "zu",
        "dan",
        "fel",
        "gor",
        "hin",
        "pol",
        "sta",
    ]
    return ["".join(rng.choice(parts, 2)) for _ in range(220)]


def tokenizer_of(words: list[str]) -> Any:
    """A tokenizer whose tokens are these words, each with the space before it."""
    import tokenizers
    import transformers as t

    known = {"<s>": 0, "</s>": 1, **{w: i for i, w in enumerate([*words, *(f" {w}" for w in words)], 2)}}
    rust = tokenizers.Tokenizer(tokenizers.models.WordLevel(known, unk_token="<s>"))
    rust.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r" ?\S+"), "isolated")
    rust.decoder = tokenizers.decoders.Fuse()
    return t.PreTrainedTokenizerFast(tokenizer_object=rust, bos_token="<s>", eos_token="</s>")


def trained(tokenizer: Any, texts: list[str], seed: int, name: str) -> HuggingFace:
    """A small GPT-NeoX trained on these texts once."""
    import transformers as t

    torch.manual_seed(seed)
    size = {"hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 192}
    config = t.GPTNeoXConfig(vocab_size=len(tokenizer), max_position_embeddings=192, **size)
    net = t.GPTNeoXForCausalLM(config)
    rows = [torch.tensor(tokenizer(text)["input_ids"]) for text in texts]
    ids, labels = (torch.nn.utils.rnn.pad_sequence(rows, True, fill) for fill in (1, -100))
    optimiser = torch.optim.AdamW(net.parameters(), lr=3e-3)
    for batch in torch.randperm(len(ids)).split(16):
        optimiser.zero_grad()
        net(input_ids=ids[batch], labels=labels[batch]).loss.backward()
        optimiser.step()
    return HuggingFace(net, tokenizer, name=name, weights=name, settings=ModelSettings())


def world(seed: int) -> dict[str, Any]:
    """A small model trained from scratch on 12 documents of each number of copies, and what recite says of each."""
    rng = np.random.default_rng([24, seed])
    words = sorted(set(made_words(rng)))
    law = rng.dirichlet(np.full(len(words), 0.05), len(words))  # a language: which word follows which

    def document() -> str:
        row = [int(rng.integers(len(words)))]
        while len(row) < 105:
            row.append(int(rng.choice(len(words), p=law[row[-1]])))
        return " ".join(words[i] for i in row)

    def documents(name: str) -> Corpus:
        return Corpus(name, tuple(Text(f"{name} {i}", document()) for i in range(DOCUMENTS)))

    tokenizer = tokenizer_of(words)
    planted = {copies: documents(f"{copies} copies") for copies in COPIES}
    never, controls = documents("never"), documents("controls")
    others = [document() for _ in range(600)]

    read = [one.text for copies, some in planted.items() for one in some.texts for _ in range(copies)]
    target = trained(tokenizer, [*read, *others], 1000 * seed + 1, f"world {seed}, model 1")
    beside = [*others, *(document() for _ in range(len(read)))]
    second = trained(tokenizer, beside, 1000 * seed + 2, f"world {seed}, model 2")
    found = {}
    for name, suspects in [
        *((f"{copies} copies", some) for copies, some in planted.items()),
        ("never", never),
    ]:
        for text in (False, True):
            models = Models(target, placebos=(second,))
            settings = ReciteSettings(cache=False, samples=1)
            verdict = recite(suspects, models, settings, controls=controls, text=text)
            printed = verdict.table("windows").columns
            own = [v for v, kind in zip(printed["printed"], printed["set"], strict=True) if kind == "texts"]
            found[f"{name}, {'text alone' if text else 'weights'}"] = {
                "p": verdict.p,
                "outcome": verdict.outcome,
                "printed": float(np.nanmean(own)),
            }
    return found


def copies(worlds: int) -> None:
    """Worlds with documents of 1 to 64 copies; how many are found with weights and with text alone."""
    rows = kept().get("copies", {}).get("worlds", [])
    for seed in range(len(rows), worlds):
        began = time.monotonic()
        rows.append(world(seed))
        counts = {
            name: {
                **tally([row[name] for row in rows]),
                "printed": float(np.mean([row[name]["printed"] for row in rows])),
            }
            for name in rows[0]
        }
        keep("copies", {"documents": DOCUMENTS, "counts": counts, "worlds": rows})
        shared()
        print(
            f"world {seed}: {time.monotonic() - began:.0f} s",
            {n: c["accused"] for n, c in counts.items()},
            flush=True,
        )


KINDS = ("boilerplate", "verse", "code", "licences", "dates")
"""Kinds of texts of which models print much without having read them."""
FAMOUS = {
    "famous, the second model read them as often": 1.0,
    "famous, the second model read them half as often": 0.5,
}
"""Texts that everyone has, in each suspect document and in no control; and how often the second model read them."""
LENGTH, SETS, FEW, READ, KEPT = 110, 150, 8, 3600, 50
"""Words of a document, pairs of sets for each pair of models, documents of a set, those that a model reads, and the
sets after which the file is written."""


def maker(kind: str, rng: np.random.Generator, branches: int = 2) -> tuple[list[str], Any]:  # noqa: C901 - one branch a kind
    """The words of a kind of texts, and a function that makes a document of it.

    In each kind what follows can be told from what stands before by one who knows the kind, while no five words in a
    row stand in two documents: a name, a count or a date of its own runs through each."""
    words = sorted(set(made_words(rng)))

    def some(number: int) -> list[str]:
        return [words[int(i)] for i in rng.integers(len(words), size=number)]

    forms = [some(3) for _ in range(30)]
    days, years = [f"{i:02d}" for i in range(1, 100)], [str(year) for year in range(1950, 2050)]

    def pieces(draw: np.random.Generator) -> Iterator[list[str]]:
        name = [words[int(i)] for i in draw.integers(len(words), size=2)]
        start, year = int(draw.integers(300)), str(draw.choice(years))
        form = int(draw.integers(len(forms)))
        for i in itertools.count(start):
            if kind == "boilerplate":  # the same phrases in the same order, each with the name
                yield [*forms[i % len(forms)], *name]
            elif kind == "verse":  # counting down, with a refrain
                yield [days[(start - i) % 30], name[0], *forms[0][:2], name[1]]
            elif kind == "code":  # calls one after the other, with the same arguments
                yield [forms[i % len(forms)][0], "(", name[0], ",", name[1], ")"]
            elif kind == "dates":  # day after day
                yield [days[i % 28], days[i // 28 % 12], year, "came"]
            else:  # clauses, each followed by one of two others, or of so many branches
                yield [*forms[form], name[0], year]
                form = (branches * form + int(draw.integers(branches))) % len(forms)

    def document(draw: np.random.Generator) -> str:
        made: list[str] = []
        for piece in pieces(draw):
            made += piece
            if len(made) >= LENGTH:
                return " ".join(made[:LENGTH])
        raise AssertionError

    return sorted({*words, *days, *years, "(", ")", ",", "came"}), document


@dataclass(frozen=True, slots=True)
class Case:
    """Texts in question and control documents of one null."""

    suspects: Corpus
    controls: Corpus

    def asked(self, models: Models, *, text: bool) -> Verdict | None:
        """The verdict of the command's own test; None where too few windows stand in one document alone."""
        settings = ReciteSettings(samples=0, draws=1999)
        try:
            return recite(self.suspects, models, settings, controls=self.controls, text=text)
        except TextsError:
            return None


def read_at_once(models: Models, cases: Sequence[Case]) -> None:
    """Fill the cache with what both models make of the windows of all cases, in large batches: a set by itself has
    some twenty windows, and continuing so few costs as much as continuing hundreds."""
    from pretrace.backends.generation import Completer
    from pretrace.verdicts.audit.generation import complete
    from pretrace.verdicts.reading import draws_of

    prompts: list[str] = []
    texts: list[str] = []
    for case in cases:
        for text in (False, True):
            try:
                found = Recite(
                    corpus=case.suspects,
                    models=models,
                    settings=ReciteSettings(samples=0, draws=1999),
                    watch=watched(None),
                    score=score_of(text=text),
                    controls=case.controls,
                    text=text,
                ).windows.found
            except TextsError:
                continue
            prompts += [one.prefix for one in found]
            texts += [] if text else [one.prefix + end for one in found for end in (one.suffix, one.other)]
    want = Want(Quantity.LOGP, frozenset({DRAWN}))
    for model in (models.target, *models.placebos):
        with open_store(model.fingerprint) as store:
            trace(model, texts, want, store=store)
        complete(Completer(model, budget=1 << 16), prompts, draws_of(0)[0])


def innocent(kind: str, seed: int, done: int, wanted: int) -> Iterator[dict[str, Any]]:
    """What recite says of sets that neither model read, of one pair of models: those from `done` to `wanted`."""
    rng = np.random.default_rng([25, seed, *kind.encode()])
    famous = FAMOUS.get(kind)
    words, document = maker(kind, rng)
    known = [document(rng) for _ in range(16)] if famous is not None else []
    tokenizer = tokenizer_of(words)
    reads = [round(64 * share) for share in (1.0, famous or 0.0)]
    target, second = (
        trained(
            tokenizer,
            [*(document(rng) for _ in range(READ)), *(one for one in known for _ in range(times))],
            100 * seed + number,
            f"{kind} {seed}, model {number}",
        )
        for number, times in enumerate(reads)
    )
    models = Models(target, placebos=(second,))
    cases = []
    for run in range(done, wanted):
        own = np.random.default_rng([26, seed, run])
        texts = [known[int(i)] for i in own.permutation(len(known))[:FEW]] or [
            document(own) for _ in range(FEW)
        ]
        cases.append(
            Case(
                Corpus("suspects", tuple(Text(f"s{i}", one) for i, one in enumerate(texts))),
                Corpus("controls", tuple(Text(f"c{i}", document(own)) for i in range(FEW))),
            )
        )
    with cached():
        # a second model is asked where the test rejects: of famous texts always, else too seldom for large batches
        read_at_once(models if famous is not None else Models(target), cases)
        for case in cases:
            row: dict[str, Any] = {}
            for text in (False, True):
                verdict = case.asked(models, text=text)
                row["text alone" if text else "weights"] = (
                    {"p": None, "outcome": "no windows"}
                    if verdict is None
                    else {
                        "p": verdict.p,
                        "outcome": verdict.outcome,
                        "printed": float(np.nanmean(verdict.table("windows").columns["printed"])),
                        "failed": [one.name for one in verdict.checks if one.status == "failed"],
                    }
                )
            yield row


@contextmanager
def cached() -> Iterator[None]:
    """A cache of its own, which is gone afterwards."""
    before = os.environ.get("PRETRACE_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PRETRACE_CACHE"] = folder
        try:
            yield
        finally:
            os.environ.pop("PRETRACE_CACHE")
            if before is not None:
                os.environ["PRETRACE_CACHE"] = before


def nulls(runs: int, kinds: list[str]) -> None:
    """How often texts that nobody read are rejected and accused, for each kind and both ways of asking."""
    part = kept().get("nulls", {})
    rows: dict[str, list[dict[str, Any]]] = part.get("rows", {})
    for seed in range(-(-runs // SETS)):
        for kind in kinds or (*KINDS, *FAMOUS):
            had = rows.get(kind, [])
            if len(had) >= min(runs, (seed + 1) * SETS):
                continue
            began = time.monotonic()
            wanted = min(runs, (seed + 1) * SETS)
            made = innocent(kind, seed, len(had) - seed * SETS, wanted - seed * SETS)
            for number, one in enumerate(made, len(had) + 1):
                rows.setdefault(kind, []).append(one)
                if number % KEPT == 0 or number >= wanted:
                    _counted(rows)
                    print(f"{kind}: {number} sets, {time.monotonic() - began:.0f} s", flush=True)


def _counted(rows: dict[str, list[dict[str, Any]]]) -> None:
    """Keep the rows of all kinds, and how many of them were rejected and accused."""
    counts = {
        f"{name}, {how}": {
            **tally([one[how] for one in some if one[how]["p"] is not None]),
            "printed": float(np.mean([one[how]["printed"] for one in some if one[how]["p"] is not None])),
        }
        for name, some in rows.items()
        for how in ("weights", "text alone")
    }
    shared_by = (
        f"{SETS} sets at a time share the two models that are asked. No two sets share a text, but famous ones, which "
        "are drawn from 16 texts a pair of models."
    )
    keep("nulls", {"documents": FEW, "sets share": shared_by, "counts": counts, "rows": rows})
    shared()


def main() -> None:
    """One part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("p", "copies", "nulls"))
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--windows", type=int, default=20)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--worlds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--kinds", nargs="*", default=[], choices=(*KINDS, *FAMOUS), help="of nulls")
    given = parser.parse_args()
    if given.part == "p":
        by_pass(given.model, given.windows, given.samples)
    elif given.part == "copies":
        copies(given.worlds)
    else:
        nulls(given.runs, given.kinds)


if __name__ == "__main__":
    main()
