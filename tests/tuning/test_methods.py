"""Tuning methods as call expressions: FSD's defaults, ranges, and a way back from the method to its name."""

import subprocess
import sys

import pytest

from pretrace.tuning.plan import AdaLora, Ia3, Lora, expression, methods


def test_the_defaults_are_those_of_the_paper():
    lora = methods.make("lora")
    assert (lora.rank, lora.alpha, lora.dropout) == (16, 32, 0.05)
    plan = lora.plan(seed=3, precision="float32")
    assert (plan.epochs, plan.batch, plan.learning_rate) == (3, 8, 1e-3)
    assert (plan.schedule, plan.warmup, plan.weight_decay, plan.seed) == ("cosine", 10, 5e-4, 3)
    assert lora.on == "nonmembers"


@pytest.mark.parametrize(
    "written",
    [
        "lora",
        "lora(rank=8, epochs=1, learning_rate=1e-4, on='members', limit=100)",
        "adalora(8)",
        "ia3(limit=0)",
    ],
)
def test_a_method_is_written_as_it_is_read(written):
    method = methods.make(written)
    assert methods.make(expression(method)) == method


def test_every_method_has_the_training_in_common():
    for name, kind in {"lora": Lora, "adalora": AdaLora, "ia3": Ia3}.items():
        made = methods.make(f"{name}(epochs=2, precision='bfloat16', recompute=True, max_tokens=64)")
        assert isinstance(made, kind)
        plan = made.plan(seed=0, precision="bfloat16")
        assert (plan.epochs, plan.recompute, plan.precision) == (2, True, "bfloat16")


def test_trainings_that_differ_in_the_adapter_alone_are_told_apart():
    plans = [
        methods.make(written).plan(seed=0, precision="float32")
        for written in ("lora", "lora(alpha=16)", "lora(dropout=0.0)")
    ]
    assert len(set(plans)) == 3


def test_adalora_begins_half_as_wide_again():
    assert [AdaLora(rank=rank).first_rank for rank in (1, 2, 16)] == [2, 3, 24]
    assert AdaLora(rank=8, initial_rank=9).first_rank == 9


def test_naming_a_method_loads_no_model_library():
    script = (
        "import sys; from pretrace.tuning.plan import methods; methods.make('lora');"
        "print([m for m in ('torch', 'peft', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
