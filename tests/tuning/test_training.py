"""The training loop: exact repetition, nothing learned from padding, going on after a kill."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from net.api import ModelError, TrainingPlan, train, training
from tiny import stop_at
from torch.nn.functional import cross_entropy
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

PLAN = TrainingPlan(epochs=2, batch=4, learning_rate=5e-3, warmup=2, save_minutes=0)


def tiny_model(*, dropout=0.0):
    torch.manual_seed(0)
    size = {"vocab_size": 50, "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 64}
    layers = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_dropout": dropout}
    return GPTNeoXForCausalLM(GPTNeoXConfig(**size, **layers))


def made_up(rows=21, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 50, size=rng.integers(2, 40)).tolist() for _ in range(rows)]


def weights(model):
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


def trained(plan=PLAN, sequences=None, *, dropout=0.0, **options):
    model = tiny_model(dropout=dropout)
    torch.seed()  # what the global state happens to be must not matter
    losses = train(model, sequences or made_up(), plan, **options)
    return weights(model), losses


def test_the_same_seed_gives_the_same_weights_another_does_not_and_the_global_state_stays():
    first, losses = trained(dropout=0.2)
    torch.manual_seed(5)
    expected = torch.rand(2)
    model = tiny_model(dropout=0.2)
    torch.manual_seed(5)
    train(model, made_up(), PLAN)
    assert torch.equal(torch.rand(2), expected)
    assert torch.equal(first, weights(model))
    assert not torch.equal(first, trained(replace(PLAN, seed=1), dropout=0.2)[0])
    assert len(losses) == 2


def test_one_step_is_the_plain_recipe_whatever_is_padded():
    """One step over unequal rows equals AdamW on the mean over all tokens, each row run by itself."""
    sequences = made_up(4)
    plan = replace(PLAN, epochs=1, warmup=0, clip=0.0, weight_decay=0.0, learning_rate=1e-3)
    got, losses = trained(plan, sequences)

    model = tiny_model()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=plan.betas, weight_decay=0.0)
    total, count = torch.zeros(()), 0
    for row in sequences:
        ids = torch.tensor([row])
        total = total + cross_entropy(model(input_ids=ids).logits[0, :-1], ids[0, 1:], reduction="sum")
        count += len(row) - 1
    (total / count).backward()
    optimiser.step()
    assert losses[0] == pytest.approx(float(total.detach()) / count, rel=1e-5)
    # Adam's first step is the sign of the gradient, so where a gradient is 0 but for rounding it may go
    # either way: compare all but a few.
    assert float(((got - weights(model)).abs() < 1e-5).float().mean()) > 0.99


@pytest.mark.parametrize(
    ("changes", "dropout"), [({"at_once": 2}, 0.0), ({"at_once": 60}, 0.0), ({"recompute": True}, 0.1)]
)
def test_pieces_of_a_batch_and_recomputed_activations_change_nothing(changes, dropout):
    whole, _ = trained(replace(PLAN, at_once=100_000), dropout=dropout)
    assert float((whole - trained(replace(PLAN, **changes), dropout=dropout)[0]).abs().mean()) < 1e-5


def test_the_schedule_reaches_the_optimiser_and_the_gradient_is_clipped_where_that_is_asked_for():
    """Both begin at the full rate; the second step of two goes half as far under the linear one."""
    moved, ends = {}, {}
    for schedule in ("constant", "linear"):
        model, stations = tiny_model(), []
        plan = replace(PLAN, epochs=1, batch=11, warmup=0, weight_decay=0.0, schedule=schedule)
        train(model, made_up(), plan, on_step=lambda _, m=model, s=stations: s.append(weights(m)))
        moved[schedule] = float((stations[1] - stations[0]).norm())
    assert moved["linear"] == pytest.approx(moved["constant"] / 2, rel=1e-3)
    for clip in (0.0, 1e9, 0.5):
        model = tiny_model()
        with torch.no_grad():
            model.get_output_embeddings().weight *= 30  # so that gradients are larger than 1
        train(model, made_up(), replace(PLAN, clip=clip))
        ends[clip] = weights(model)
    assert torch.equal(ends[0.0], ends[1e9])
    assert not torch.equal(ends[0.0], ends[0.5])


def test_bfloat16_learns_and_leaves_the_weights_in_float32():
    model = tiny_model()
    losses = train(model, made_up(), replace(PLAN, precision="bfloat16", epochs=8, learning_rate=1e-2))
    assert losses[-1] < losses[0] - 0.1
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}


def test_only_what_requires_a_gradient_learns_and_the_model_ends_in_eval_mode():
    model = tiny_model()
    model.gpt_neox.requires_grad_(False)
    before, head = weights(model.gpt_neox), model.get_output_embeddings().weight.detach().clone()
    train(model, made_up(), replace(PLAN, recompute=True))
    assert torch.equal(weights(model.gpt_neox), before)
    assert not torch.equal(model.get_output_embeddings().weight, head)
    assert not model.training
    assert all(weight.grad is None for weight in model.parameters())


class Pull:
    """A companion that pulls all weights towards 0 and looks at the gradients of every step."""

    def __init__(self, model, weight):
        self.weights, self.weight, self.steps = list(model.parameters()), weight, []

    def penalty(self):
        return self.weight * sum(w.square().sum() for w in self.weights)

    def updated(self, step):
        assert any(w.grad is not None and bool(w.grad.any()) for w in self.weights)
        self.steps.append(step)


def test_a_companion_adds_its_penalty_and_is_told_of_every_step_but_the_loss_stays_the_loss():
    ends = {}
    for weight in (0.0, 1.0):
        model = tiny_model()
        pull = Pull(model, weight)
        losses = train(model, made_up(), PLAN, companion=pull)
        assert pull.steps == list(range(1, 13))
        ends[weight] = (float(weights(model).norm()), losses)
    plain, losses = trained()
    assert ends[0.0][0] == pytest.approx(float(plain.norm()), rel=1e-6)
    assert ends[1.0][0] < ends[0.0][0]
    assert ends[1.0][1][0] == pytest.approx(losses[0], rel=0.2)  # not the penalty, which is over 100


@pytest.mark.parametrize("step", [1, 6, 11])
def test_an_interrupted_or_killed_training_ends_with_the_same_weights(step, tmp_path):
    place, there = tmp_path / "training", []
    expected, whole = trained(dropout=0.2)

    def stop(progress):
        there[:] = [place.read_bytes()]  # what kill -9 would leave now
        stop_at(step)(progress)

    with pytest.raises(KeyboardInterrupt):
        trained(dropout=0.2, on_step=stop, checkpoint=place)
    assert there == [place.read_bytes()]
    seen = []
    resumed, losses = trained(dropout=0.2, on_step=seen.append, checkpoint=place)
    assert seen[0].step == step + 1
    assert torch.equal(resumed, expected)
    assert losses == whole


@pytest.mark.parametrize("other", ["sequences", "plan", "weights", "damage", "short", "empty"])
def test_a_checkpoint_that_does_not_belong_is_not_continued(other, tmp_path):
    place = tmp_path / "training"
    with pytest.raises(KeyboardInterrupt):
        trained(on_step=stop_at(7), checkpoint=place)
    sequences, plan, model = made_up(), PLAN, tiny_model()
    if other == "sequences":
        sequences[3][0] += 1
    elif other == "plan":
        plan = replace(PLAN, learning_rate=6e-3)
    elif other == "weights":
        with torch.no_grad():
            model.get_output_embeddings().weight[0, 0] += 1
    else:
        content = place.read_bytes()
        kept = {"damage": b"no checkpoint at all", "short": content[: len(content) // 2], "empty": b""}
        place.write_bytes(kept[other])
    seen = []
    train(model, sequences, plan, on_step=seen.append, checkpoint=place)
    assert seen[0].step == 1


def test_a_checkpoint_is_written_in_time_and_none_left_by_a_training_that_diverges(tmp_path):
    trained(replace(PLAN, save_minutes=10), checkpoint=tmp_path / "training")
    assert not list(tmp_path.iterdir())
    model = tiny_model()

    def spoil(progress):
        if progress.step == 3:
            assert list(tmp_path.iterdir())
            with torch.no_grad():
                model.get_output_embeddings().weight *= math.inf

    with pytest.raises(ModelError, match=r"diverged.*step 4 of 12.*choose a learning rate below 0\.005"):
        train(model, made_up(), PLAN, on_step=spoil, checkpoint=tmp_path / "training")
    assert not list(tmp_path.iterdir())
    assert not model.training


def test_logits_a_few_positions_at_a_time_are_the_loss_over_all_at_once(monkeypatch):
    """The same gradients whether the output layer is taken in slices, or is not one that can be taken apart."""
    ends, scaled = {}, tiny_model()
    for rows in (1, 7, 1000, None):
        monkeypatch.setattr(training, "_CPU_ROWS", rows)
        if rows is None:
            monkeypatch.setattr(training, "is_head_alone", lambda *_: False)
        ends[rows] = trained(replace(PLAN, epochs=1))
    monkeypatch.undo()
    for end, losses in ends.values():
        assert float((end - ends[None][0]).abs().mean()) < 1e-5
        assert losses == pytest.approx(ends[None][1], rel=1e-5)
    forward = scaled.forward

    def halved(**inputs):
        output = forward(**inputs)
        output.logits = output.logits * 0.5 + 1
        return output

    scaled.forward, ids = halved, made_up(1)
    with torch.no_grad():
        expected = cross_entropy(scaled(input_ids=torch.tensor(ids)).logits[0, :-1], torch.tensor(ids[0][1:]))
    found = train(scaled, ids, replace(PLAN, epochs=1))
    assert found == pytest.approx((float(expected),), rel=1e-5)
