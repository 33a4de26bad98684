"""Float32 products take oneDNN where it is exact; time only refuses it, and the switch is put back."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import torch

from pretrace.backends import precision
from pretrace.backends.precision import DEFAULT, ONEDNN, Measured, decided
from pretrace.cache.location import cache_folder

EXACT, ROUNDED = (2e-6, 4e-6), (2e-6, 5e-2)


@pytest.fixture(autouse=True)
def unmeasured() -> Iterator[None]:
    precision.route_of.cache_clear()
    yield
    precision.route_of.cache_clear()


def measured(errors: tuple[float, float], *rounds: tuple[float, float]) -> Measured:
    return Measured(256, (576, 1536), errors, rounds)


def test_the_chosen_route_is_as_exact_as_the_default() -> None:
    generator = torch.Generator().manual_seed(1)
    left, right = torch.randn(300, 700, generator=generator), torch.randn(500, 700, generator=generator)
    truth, errors = left.double() @ right.double().T, {}
    for route in (DEFAULT, precision.best_route()):
        with precision.products(route):
            product = torch.nn.functional.linear(left, right)
        errors[route] = float((product.double() - truth).abs().max())
    assert errors[precision.best_route()] <= 10 * errors[DEFAULT]


def test_a_rounding_route_is_refused_however_fast_it_is() -> None:
    """As on a processor with bfloat16 units, where the switch really rounds."""
    assert decided([measured(ROUNDED, (1.0, 0.1), (1.0, 0.1))]).chosen == DEFAULT
    assert decided([measured(EXACT), measured(ROUNDED)]).chosen == DEFAULT
    assert decided([measured((2e-6, float("nan")))]).chosen == DEFAULT


@pytest.mark.parametrize(
    ("rounds", "chosen"),
    [
        ([(1.0, 0.5), (1.0, 0.5)], ONEDNN),
        ([(1.0, 1.0), (1.0, 1.0)], ONEDNN),  # no gain is no reason against it
        ([(1.0, 3.0), (1.0, 0.5)], ONEDNN),  # one busy moment
        ([(1.0, 2.0), (1.0, 2.0)], DEFAULT),
        ([(1.0, 9.0)], ONEDNN),  # once is not enough
    ],
)
def test_time_refuses_an_exact_route_only_if_it_is_slower_in_every_round(
    rounds: list[tuple[float, float]], chosen: str
) -> None:
    assert decided([measured(EXACT, *rounds)]).chosen == chosen


def test_the_shapes_of_a_model_count_together() -> None:
    """oneDNN is slower on a small shape in both rounds, but not on the shapes together."""
    small, large = measured(EXACT, (0.1, 0.3), (0.1, 0.3)), measured(EXACT, (1.0, 0.5), (1.0, 0.5))
    assert decided([small, large]).chosen == ONEDNN
    assert decided([small]).chosen == DEFAULT


def test_the_two_routes_take_turns_at_least_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def linear(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        taken.append(torch.backends.mkldnn.matmul.fp32_precision == "bf16")
        return left @ right.T

    monkeypatch.setattr(torch.nn.functional, "linear", linear)
    found = precision._measure((512, 512))
    assert len(found.rounds) >= 2
    assert taken == [False, True] * (len(taken) // 2)
    assert len(taken) >= 2 * 2 * 2


def test_the_choice_is_kept_with_its_figures_for_each_set_of_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([(1.0, 2.0), (1.0, 0.5), (1.0, 2.0)])
    monkeypatch.setattr(precision, "_measure", lambda shape: measured(EXACT, *[next(times)] * 2))
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(8, 16), torch.nn.Linear(16, 9))
    assert precision.shapes_of(model) == ((8, 16), (16, 9))
    one, other = torch.nn.Linear(3, 4), torch.nn.Linear(4, 3)
    for _ in range(3):
        precision.route_of.cache_clear()
        assert precision.best_route(one) == DEFAULT
        assert precision.best_route(other) == ONEDNN
    kept = [json.loads(file.read_text()) for file in (cache_folder() / precision.KIND).glob("*.json")]
    assert sorted(one["chosen"] for one in kept) == [DEFAULT, ONEDNN]
    refused = next(one for one in kept if one["chosen"] == DEFAULT)
    assert refused["figures"]["onednn_over_default"] == [2.0, 2.0]
    assert "2.00 and 2.00 times" in refused["reason"]


def test_a_damaged_record_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = torch.nn.Linear(3, 4)
    precision.best_route(layer)
    [file] = (cache_folder() / precision.KIND).glob("*.json")
    file.write_text('{"chosen": "onednn"')
    precision.route_of.cache_clear()
    monkeypatch.setattr(precision, "_measure", lambda shape: measured(ROUNDED))
    assert precision.best_route(layer) == DEFAULT


def test_the_switch_is_put_back() -> None:
    before = torch.backends.mkldnn.matmul.fp32_precision
    with pytest.raises(KeyError), precision.products(ONEDNN):
        raise KeyError
    assert torch.backends.mkldnn.matmul.fp32_precision == before
