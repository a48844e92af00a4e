"""Names and settings as text ↔ objects."""

from __future__ import annotations

import pytest

import bayesneg as bn
from bayesneg.config.build import default_of
from bayesneg.config.registry import MODELS, built_in_samplers
from bayesneg.config.settings import REQUIRED, schedule, settings_of
from bayesneg.config.specs import (
    SamplerSpec,
    build_model,
    parse_priors,
    parse_samplers,
    sort_settings,
    with_device,
)
from bayesneg.config.writing import as_text
from bayesneg.errors import InputError
from bayesneg.models.torch import settings
from worlds import interactions


@pytest.fixture
def split() -> bn.Split:
    data = interactions([[0, 1, 2, 3, 4]] * 4, 9, user_columns={"age": ["1", "2", "1", "2"], "job": list("aabb")})
    return bn.split(data, test=0.2, seed=0)


BUILT = {
    "rns": bn.RNS(),
    "pns:power=1": bn.PNS(power=1.0),
    "in-batch:weighting=posterior:prior=rate": bn.samplers.InBatch(weighting="posterior", prior="rate"),
    "bns:candidates=2048:shared=true:weighting=posterior": bn.BNS(candidates=2048, shared=True, weighting="posterior"),
    "aobpr:fraction=0.1": bn.AOBPR(fraction=0.1),
    "aobpr-factor": bn.AOBPR(rank="factor"),
    "dns:candidates=8:top=3": bn.DNS(candidates=8, top=3),
    "dns:candidates=all": bn.DNS(candidates="all"),
    "srns:memory=4:fresh=9": bn.SRNS(memory=4, fresh=9),
    "ahns:shift=0.5:level=2:exponent=-3": bn.samplers.AHNS(shift=0.5, level=2.0, exponent=-3.0),
    "sir:candidates=64:negatives=8:proposal=popularity": bn.samplers.SIR(64, negatives=8, proposal="popularity"),
    "dens:candidates=8:balance=0.2:negatives=2": bn.samplers.DENS(8, balance=0.2, negatives=2),
    "mixgcf:candidates=32:negatives=2": bn.samplers.MixGCF(32, 2),
    "bcl:auc=0.9:value=0.01": bn.BNS(
        candidates=2048,
        shared=True,
        weighting="posterior",
        likelihood=bn.likelihoods.BCL(0.9),
        prior=bn.priors.Flat(0.01),
    ),
    "bns:candidates=10:weight=2": bn.BNS(candidates=10, weight=2.0),
    "bns:likelihood=mixture": bn.BNS(likelihood="mixture"),
    "posterior:likelihood=empirical": bn.Posterior(likelihood="empirical"),
    "bns:prior=self:likelihood=uninformative": bn.BNS(prior=bn.priors.SelfEstimated(), likelihood="uninformative"),
    "bns:cdf_over=catalogue": bn.BNS(cdf_over="catalogue"),
    "bns:cdf_over=all": bn.BNS(cdf_over="all"),
    "posterior": bn.Posterior(),
    "bns-1": bn.BNS(weight=bn.samplers.LinearDecay()),
    "bns-1:weight=linear/8/0.5/1": bn.BNS(weight=bn.samplers.LinearDecay(8.0, 0.5, 1.0)),
    "bns-2:warmup=3": bn.WarmStart(bn.RNS(), bn.BNS(), warmup=3),
    "bns-3": bn.BNS(prior=bn.priors.Flat()),
    "bns-4": bn.BNS(prior=bn.priors.Group()),
    "bns-4:column=job": bn.BNS(prior=bn.priors.Group("job")),
    "optimal": bn.BNS(candidates="all"),
    "bns-learned": bn.BNS(prior=bn.priors.Learned()),
    "bns-learned:hidden=0.5:item_model=neighbours": bn.BNS(
        prior=bn.priors.Learned(item_model="neighbours", hidden=0.5)
    ),
    "bns:prior=learned:l2=50": bn.BNS(prior=bn.priors.Learned(l2=50.0)),
    "bns:prior=rate": bn.BNS(prior=bn.priors.Rate()),
    "bns:prior=rate:hidden=0.4:strength=2": bn.BNS(prior=bn.priors.Scaled(bn.priors.Rate(0.4), 2.0)),
    "bns:prior=smoothed:column=job": bn.BNS(prior=bn.priors.SmoothedGroup("job")),
    "bns:prior=rate+flat": bn.BNS(prior=bn.priors.Combined([bn.priors.Rate(), bn.priors.Flat()])),
    "bns:strength=0.5": bn.BNS(prior=bn.priors.Scaled(bn.priors.Popularity(), 0.5)),
}


@pytest.mark.parametrize("text", BUILT)
def test_a_name_with_settings_builds_the_sampler_that_it_says(split, text):
    assert SamplerSpec.parse(text).build(split) == BUILT[text]


def test_every_sampler_of_the_command_line_is_built_above_or_is_the_oracle():
    assert {text.partition(":")[0] for text in BUILT} | {"oracle"} == set(built_in_samplers())


def test_the_oracle_sees_what_is_held_out_and_says_so(split):
    oracle = SamplerSpec.parse("oracle").build(split)
    assert oracle.uses_test_labels
    assert oracle.prior == bn.priors.Oracle(split.held_out)


@pytest.mark.parametrize("text", [*BUILT, "oracle"])
def test_an_object_is_written_as_text_that_builds_it_again(split, text):
    sampler = SamplerSpec.parse(text).build(split)
    written = as_text(sampler, split)
    assert SamplerSpec.parse(written).build(split) == sampler


@pytest.mark.parametrize(
    "sampler",
    [
        bn.BNS(prior=lambda users, items: 0.1 + 0 * items),
        bn.BNS(weight=lambda epoch: 5.0),
        bn.BNS(prior=bn.priors.Combined([bn.priors.Rate(0.1), bn.priors.SmoothedGroup(hidden=0.2)])),
        bn.WarmStart(bn.DNS(candidates=3), bn.BNS(candidates=4)),
        bn.BNS(prior=bn.priors.Item([0.1] * 9)),
    ],
    ids=["function", "schedule", "two values of one setting", "two samplers", "array"],
)
def test_an_object_that_no_text_builds_is_not_written(split, sampler):
    assert as_text(sampler, split) is None


@pytest.mark.parametrize("name", built_in_samplers())
def test_the_defaults_shown_are_those_of_the_sampler(split, name):
    spec = SamplerSpec(name, {})
    shown = {key: default_of(setting) for key, setting in spec.known().items() if key not in ("seen", "moved", "pool")}
    given = {key: value for key, value in shown.items() if value not in (None, REQUIRED)} | dict(spec.named.presets)
    given.pop("strength", None)  # which wraps the prior
    assert SamplerSpec(name, given).build(split) == spec.build(split)


def test_the_defaults_shown_are_those_of_the_model(monkeypatch):
    monkeypatch.setattr(settings, "find_spec", lambda name: True)  # torch is not needed for settings
    for name, kind in MODELS.items():
        shown = {key: each.default for key, each in settings_of(kind).items() if each.is_text}
        assert build_model(name, shown) == kind()
    assert "layers" in settings_of(MODELS["lightgcn"])
    assert not settings_of(MODELS["torch-mf"])["layers"].is_text  # which is what tells it from lightgcn


def test_a_device_is_a_setting_of_the_models_that_have_one():
    assert with_device({"dim": "4"}, "lightgcn", "cuda") == {"dim": "4", "device": "cuda"}
    assert with_device({}, "torch-mf", "cpu") == {"device": "cpu"}
    assert with_device({}, "mf", "auto") == with_device({}, "mf", "cpu") == with_device({}, "lightgcn", None) == {}


@pytest.mark.parametrize(
    ("model", "settings", "device", "expected"),
    [
        ("mf", {}, "cuda", "model mf runs on the CPU only; drop --device, or use --model lightgcn or torch-mf"),
        ("mf", {}, "gpu", "--device must be auto, cpu or cuda, got 'gpu'"),
        ("lightgcn", {}, "", "--device must be auto, cpu or cuda, got ''"),
        ("lightgcn", {"device": "cpu"}, "cuda", "given twice, by --device and by --set device"),
    ],
)
def test_a_device_that_cannot_be_is_refused(model, settings, device, expected):
    with pytest.raises(InputError) as error:
        with_device(settings, model, device)
    assert expected in str(error.value)


def test_a_model_that_needs_torch_says_so_before_any_data_is_read(monkeypatch):
    monkeypatch.setattr(settings, "find_spec", lambda name: None)
    for name in ("lightgcn", "torch-mf"):
        with pytest.raises(InputError) as error:
            build_model(name, {})
        assert f"model {name} needs torch, which is not installed; run: pip install 'bayesneg[torch]'" in str(
            error.value
        )
    assert build_model("mf", {}) == bn.MF()


def test_settings_keep_the_order_in_which_they_were_given():
    given = ["hidden=0.5", "item_model=ease", "l2=100", "strength=2"]
    for parts in (given, given[::-1]):  # an order by hash is at most one of the two
        (found,) = parse_priors(":".join(["learned", *parts])).values()
        assert list(found) == ["prior", *(part.partition("=")[0] for part in parts)]


def test_set_goes_to_the_model_first_and_then_to_every_sampler_that_knows_it():
    model, specs = sort_settings(["dim=8", "candidates=3"], "mf", parse_samplers("rns,dns,bns:candidates=7"))
    assert model == {"dim": "8"}
    assert [dict(spec.settings) for spec in specs] == [{}, {"candidates": "3"}, {"candidates": "7"}]


def test_among_several_samplers_a_name_keeps_its_meaning():
    _, specs = sort_settings(["prior=oracle", "candidates=3"], "mf", parse_samplers("bns,bns-3,optimal"))
    assert [spec.settings.get("prior") for spec in specs] == ["oracle", None, "oracle"]
    assert [spec.settings.get("candidates") for spec in specs] == ["3", "3", None]


def test_a_single_sampler_takes_any_of_its_settings():
    _, (spec,) = sort_settings(["weight=linear/8/0.5/1"], "mf", parse_samplers("bns-1"))
    assert spec.settings == {"weight": "linear/8/0.5/1"}


@pytest.mark.parametrize(
    ("sets", "samplers", "expected"),
    [
        (["color=red"], "rns", "'color' is not a setting of rns or mf"),
        (["candidate=3"], "rns,dns", "did you mean candidates?"),
        (["weight=3"], "rns,dns", "'weight' is not a setting of rns or dns or mf"),
        (["dim"], "rns", "'dim' is not of the form key=value"),
        (["=3"], "rns", "'=3' is not of the form key=value"),
        (["dim=3", "dim=4"], "rns", "dim is given twice"),
        (["top=many"], "dns", "top=many"),
    ],
)
def test_settings_that_are_wrong_are_refused_before_any_data_is_read(sets, samplers, expected):
    with pytest.raises(InputError) as error:
        sort_settings(sets, "mf", parse_samplers(samplers))
    assert expected in str(error.value)


def test_dashes_may_stand_for_underscores():
    assert sort_settings(["learning-rate=0.1"], "mf", [])[0] == {"learning_rate": "0.1"}


def test_commas_within_brackets_belong_to_a_setting():
    assert [spec.label for spec in parse_samplers("rns,my.py:Mine:weights=(1, 2)")] == ["RNS", "Mine (weights=(1, 2))"]


@pytest.mark.parametrize("text", ["square", "linear/1", "linear/a/b/c", ""])
def test_a_schedule_that_is_none_is_refused(text):
    with pytest.raises(InputError, match="linear/START/RATE/FLOOR"):
        schedule(text)


@pytest.mark.parametrize(
    "text", ["bns:prior=self+rate:likelihood=uninformative", "bns:prior=self:strength=2:likelihood=uninformative"]
)
def test_a_self_estimated_prior_stands_alone(text):
    split = bn.split(bn.synthetic(60, 50, seed=0), test=0.2, seed=0)
    with pytest.raises(InputError, match="cannot be a part of another prior"):
        SamplerSpec.parse(text).build(split)


def test_the_refresh_of_a_score_cdf_is_a_setting():
    split = bn.split(bn.synthetic(30, 40, seed=0), test=0.2, seed=0)
    built = SamplerSpec.parse("bns:cdf=refreshed:moved=0.3:pool=12").build(split)
    assert built.refresh == bn.samplers.Refresh(moved=0.3, pool=12)
    with pytest.raises(InputError, match="moved is a setting of the refreshed score CDF; set cdf=refreshed with it"):
        SamplerSpec.parse("bns:cdf=exact:moved=0.3").build(split)


def test_a_setting_of_another_choice_is_refused_with_the_choices_that_have_it(split):
    for text, expected in {
        "bns:l2=3": "sampler bns: l2 is a setting of the prior learned; set prior=learned with it",
        "bns:hidden=3": "hidden is a setting of the prior learned, rate, self or smoothed; set prior=learned with it",
        "bns-2:false_share=0.1": "false_share is a setting of the likelihood bcl, empirical or mixture",
        "bns:prior=lerned": "'lerned' is not a prior; did you mean learned? valid: file.py:Class, flat",
        "posterior:likelihood=none": "'none' is not a likelihood; valid: bcl, empirical, mixture, paper, uninformative",
        "dns:prior=flat": "'prior' is not a setting of sampler dns; valid: candidates, negatives, top",
        "rns:draw=uniform": "'draw' is not a setting of sampler rns; valid: negatives, shared",
        "bns:chosen_column=c": "chosen_column goes with rejected",
    }.items():
        with pytest.raises(InputError) as error:
            SamplerSpec.parse(text).build(split)
        assert expected in str(error.value)


def test_set_gives_a_setting_of_a_part_to_the_samplers_that_chose_the_part():
    _, specs = sort_settings(["l2=9"], "mf", parse_samplers("bns,bns:prior=learned,bns-learned"))
    assert ["l2" in spec.settings for spec in specs] == [False, True, True]
    _, (spec,) = sort_settings(["l2=9", "prior=learned"], "mf", parse_samplers("bns"))
    assert spec.settings == {"l2": "9", "prior": "learned"}
    with pytest.raises(InputError, match="l2 is a setting of the prior learned"):
        sort_settings(["l2=9"], "mf", parse_samplers("rns,bns"))


def test_settings_are_laid_over_an_object(split):
    given = bn.BNS(candidates=7, prior=bn.priors.Rate(0.5), weight=bn.samplers.LinearDecay())
    changed = SamplerSpec("mine", {"hidden": "0.2", "likelihood": "mixture", "strength": "2"}, given).build(split)
    assert changed == bn.BNS(
        candidates=7,
        prior=bn.priors.Scaled(bn.priors.Rate(0.2), 2.0),
        weight=bn.samplers.LinearDecay(),
        likelihood="mixture",
    )
    assert SamplerSpec("mine", {}, given).build(split) is given
    assert SamplerSpec("mine", {}, given).fixed == {"candidates", "prior", "weight"}
