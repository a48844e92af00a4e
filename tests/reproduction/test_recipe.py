"""A sweep's TOML file: what it means, and what is said where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
import sweeps

from bayesneg.errors import InputError
from bayesneg.experiments.datasets import Source
from bayesneg.reproduction.sweeps.cells import Cell
from bayesneg.reproduction.sweeps.recipe import Recipe

HEAD = 'title = "x"\ndatasets = ["{dataset}"]\n'


def cells_of(folder: Path, text: str) -> list[Cell]:
    path = folder / "x.toml"
    path.write_text(HEAD.format(dataset=sweeps.world(folder)) + text)
    return Recipe.read(path).cells(Source().fingerprint)


def test_a_recipe_is_every_sampler_in_every_view_with_every_seed(tmp_path):
    cells = sweeps.read(tmp_path).cells(Source().fingerprint)
    assert len({cell.key for cell in cells}) == len(cells) == 3 * 2 * 2
    assert [cell.seed for cell in cells] == [0] * 6 + [1] * 6
    assert {cell.sampler for cell in cells} == {"rns", "dns", "bns"}


def test_a_cell_has_one_key_however_its_sampler_is_written_and_called(tmp_path):
    text = '[[samplers]]\nlabel = "{}"\nuse = "{}"\n'
    one, two, three = cells_of(
        tmp_path,
        text.format("BNS", "bns")
        + text.format("λ = 5", "bns:weight=5:candidates=5")
        + text.format("m = 3", "bns:candidates=3"),
    )
    assert one.key == two.key != three.key
    assert one.label != two.label
    assert Cell.from_dict(two.to_dict()) == two


def test_where_changes_the_cells_it_names_and_what_is_given_last_wins(tmp_path):
    text = """
models = ["mf", "torch-mf"]
seeds = 2
epochs = 9
[[samplers]]
label = "RNS"
use = "rns"
[[where]]
model = "mf"
seeds = 1
settings = { dim = 8 }
"""
    cells = cells_of(tmp_path, text)
    assert [(cell.model, cell.seed, cell.model_settings) for cell in cells] == [
        ("mf", 0, {"dim": 8}),
        ("torch-mf", 0, {}),
        ("torch-mf", 1, {}),
    ]
    narrowed = Recipe.read(tmp_path / "x.toml").narrowed(models=["mf"], seeds=3, epochs=2).cells(Source().fingerprint)
    assert [(cell.seed, cell.epochs) for cell in narrowed] == [(0, 2), (1, 2), (2, 2)]


ROW = '[[samplers]]\nlabel = "{}"\nuse = "{}"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seeds = 0", ": seeds: input should be greater than or equal to 1"),
        ("speed = 1", "x.toml: 'speed' is not a key of a recipe; did you mean seeds?"),
        ("seeds = ", "column 9: invalid value"),
        ('models = ["xf"]', "x.toml: 'xf' is not a model"),
        ('models = ["ease"]', "x.toml: 'ease' is not a model with a sampler; valid: lightgcn, mf, torch-mf"),
        (ROW.format("a", "bnz"), "x.toml: 'bnz' is not a sampler; did you mean bns?"),
        (ROW.format("a", "bns:candidates=x"), "x.toml: sampler bns: candidates=x"),
        (ROW.format("a", "dns") + ROW.format("A", "bns"), "x.toml: two rows have the same label, 'a' and 'A'"),
        ('[[where]]\ndataset = "typo"\nseeds = 1', "x.toml: 'typo' is not a dataset of this recipe; valid: "),
        ('[[where]]\nmodel = "typo"\nseeds = 1', "x.toml: 'typo' is not a model of this recipe; valid: mf"),
        (ROW.format("a", "mine.py:Mine"), "x.toml: row 'a' names mine.py:Mine, whose code would be run"),
        (ROW.format("a", "bns:prior=rate+mine.py:p"), "x.toml: row 'a' names mine.py:p, whose code would be run"),
        ('views = ["first"]', "x.toml: views.0: input should be 'last' or 'best'"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_place(tmp_path, text, said):
    with pytest.raises(InputError) as caught:
        cells_of(tmp_path, f"{text}\n{'' if 'samplers' in text else ROW.format('RNS', 'rns')}")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'title = "x"\ndatasets = ["d"]\n', "x.toml: samplers: field required"),
        (b'title = "x"\n' + ROW.format("RNS", "rns").encode(), "x.toml: datasets: field required"),
        (
            b'title = "x"\ndatasets = []\n' + ROW.format("RNS", "rns").encode(),
            "x.toml line 2: datasets: tuple should have",
        ),
        ('title = "é"\n'.encode("latin-1"), "x.toml: byte 9 is not UTF-8; save the file as UTF-8"),
    ],
)
def test_a_file_that_says_too_little_or_is_no_text_is_one_sentence(tmp_path, content, said):
    (tmp_path / "x.toml").write_bytes(content)
    with pytest.raises(InputError) as caught:
        Recipe.read(tmp_path / "x.toml")
    assert said in str(caught.value)


def test_a_name_given_twice_counts_once(tmp_path):
    text = 'models = ["mf", "mf"]\nviews = ["last", "best", "last"]\n' + ROW.format("RNS", "rns")
    assert len(cells_of(tmp_path, text)) == 2
    recipe = Recipe.read(tmp_path / "x.toml")
    dataset = recipe.datasets[0]
    twice = recipe.narrowed(
        datasets=[dataset, dataset], models=["mf", "mf"], views=["last", "last"], samplers=["RNS", "rns"]
    )
    assert len(twice.cells(Source().fingerprint)) == 1


def test_only_rows_of_the_recipe_can_be_asked_for(tmp_path):
    recipe = sweeps.read(tmp_path)
    assert [row.label for row in recipe.narrowed(samplers=["bns", "RNS"]).samplers] == ["BNS", "RNS"]
    with pytest.raises(InputError, match=r"'pns' is not a row of this experiment; .*valid: bns, dns, rns"):
        recipe.narrowed(samplers=["pns"])
