"""The faster route for float32 products is taken only where it is exact, and put back afterwards."""

from __future__ import annotations

import pytest
import torch

from pretrace.backends import precision


def setting() -> str:
    return str(torch.backends.mkldnn.matmul.fp32_precision)


def error(route: str) -> float:
    generator = torch.Generator().manual_seed(1)
    left, right = torch.randn(300, 700, generator=generator), torch.randn(500, 700, generator=generator)
    with precision.products(route):
        product = torch.nn.functional.linear(left, right)
    return float((product.double() - left.double() @ right.double().T).abs().max())


def test_the_chosen_route_is_as_exact_as_the_default() -> None:
    precision.best_route.cache_clear()
    assert error(precision.best_route()) <= 10 * error(precision.DEFAULT)


def test_a_rounding_route_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a processor with bfloat16 units, where the switch really rounds: exactness decides, not speed."""

    def probe(route: str, *_: object) -> tuple[float, float]:
        return (2e-6, 1.0) if route == precision.DEFAULT else (5e-2, 0.1)

    monkeypatch.setattr(precision, "_probe", probe)
    assert precision._probed() == precision.DEFAULT
    monkeypatch.setattr(
        precision, "_probe", lambda route, *_: (3e-6, 1.0 if route == precision.DEFAULT else 0.5)
    )
    assert precision._probed() == precision.ONEDNN
    monkeypatch.setattr(precision, "_probe", lambda route, *_: (3e-6, 1.0))
    assert precision._probed() == precision.DEFAULT


def test_the_choice_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    routes = iter([precision.ONEDNN, precision.DEFAULT])
    monkeypatch.setattr(precision, "_probed", lambda: next(routes))
    for _ in range(3):
        precision.best_route.cache_clear()
        assert precision.best_route() == precision.ONEDNN
    precision.best_route.cache_clear()


def test_the_switch_is_put_back() -> None:
    before = setting()
    with pytest.raises(KeyError), precision.products(precision.ONEDNN):
        raise KeyError
    assert setting() == before
