"""What a torch model can be told, and what it refuses."""

from __future__ import annotations

import pytest

import bayesneg as bn
from bayesneg.errors import InputError
from bayesneg.models.torch import settings


@pytest.mark.parametrize("kind", [bn.LightGCN, bn.TorchMF])
def test_the_paper_s_settings_have_a_name(kind):
    model = kind.paper()
    assert (model.dim, model.layers, model.learning_rate, model.batch_size) == (32, int(kind is bn.LightGCN), 0.01, 128)
    assert (model.decay, model.decay_every, model.strength, model.shuffle) == (0.1, 20, 1e-5, "epoch")
    assert kind.paper(batch_size=1024).strength == pytest.approx(1.25e-6)
    assert kind.paper(decay=0.5, dim=4) == kind(decay=0.5, dim=4, scale_regularization=True)


def test_the_defaults_keep_the_learning_rate_and_do_not_scale_the_penalty():
    model = bn.LightGCN()
    assert model.rate_at(1) == model.rate_at(100) == 0.01
    assert model.strength == bn.LightGCN(batch_size=2048).strength == bn.LightGCN.paper().strength
    assert model.shuffle == bn.MF().shuffle == "epoch"
    assert bn.MF.paper(dim=4) == bn.MF(dim=4, shuffle="once")


def test_the_learning_rate_falls_in_steps():
    model = bn.LightGCN(learning_rate=0.5, decay=0.1, decay_every=3)
    rates = [model.rate_at(epoch) for epoch in range(1, 8)]
    assert rates == pytest.approx([0.5, 0.5, 0.5, 0.05, 0.05, 0.05, 0.005])


def test_the_penalty_scales_with_the_batch_where_asked():
    scaled = {"regularization": 1e-3, "scale_regularization": True}
    assert bn.LightGCN(batch_size=1024, **scaled).strength == pytest.approx(1.25e-4)
    assert bn.LightGCN(batch_size=32, **scaled).strength == pytest.approx(4e-3)
    assert bn.LightGCN(regularization=1e-3, batch_size=1024).strength == 1e-3


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dim": 0}, "dim must be"),
        ({"layers": -1}, "layers must be"),
        ({"layers": 1.5}, "layers must be"),
        ({"init_scale": 0}, "init_scale must be"),
        ({"learning_rate": 0}, "learning_rate must be"),
        ({"learning_rate": float("nan")}, "learning_rate must be"),
        ({"decay": 0}, "decay must be"),
        ({"decay_every": 0}, "decay_every must be"),
        ({"regularization": -1}, "regularization must be"),
        ({"penalty": "l1"}, "penalty must be one of weight_decay, batch, first_layer"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"shuffle": "never"}, "shuffle must be"),
        ({"device": "tpu"}, "device must be one of auto, cpu, cuda"),
        ({"chunk": 0}, "chunk must be"),
    ],
)
def test_a_wrong_setting_is_refused(settings, words):
    with pytest.raises(InputError, match=words):
        bn.LightGCN(**settings)


def test_settings_can_be_made_without_torch_and_training_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(settings, "find_spec", lambda name: None)
    split = bn.split(bn.synthetic(30, 40, seed=0), test=0.2, seed=0)
    for model in (bn.LightGCN(), bn.TorchMF(), bn.TorchModel(build=lambda train: None)):
        with pytest.raises(InputError, match=r"needs torch.*pip install 'bayesneg\[torch\]'"):
            bn.fit(model, split, bn.RNS(), epochs=1, progress=False)
        with pytest.raises(InputError, match=r"needs torch.*pip install 'bayesneg\[torch\]'"):
            bn.compare(model, split, {"RNS": bn.RNS()}, seeds=1, epochs=1, progress=False)
    bn.fit(bn.MF(dim=2), split, bn.RNS(), epochs=1, progress=False)
