"""``run.export`` and ``bn.load_export``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from safetensors.numpy import load_file

import bayesneg as bn
from bayesneg.errors import InputError
from bayesneg.integrity.digests import file_digest, sealed
from bayesneg.runs.exports import item_index
from bayesneg.runs.exports.item_index import ItemIndex
from bayesneg.runs.exports.model_card import Contents, model_card
from worlds import random_interactions


@pytest.fixture
def copy(exported, tmp_path):
    """A copy of an export, to be spoiled."""
    return shutil.copytree(exported, tmp_path / "copy")


def lists(model, users, **how):
    return [model.recommend(user, k=20, **how) for user in users]


def changed(folder, **values):
    """The config of an export with other values."""
    config = json.loads((folder / "config.json").read_text())
    del config["sha256"]
    (folder / "config.json").write_text(json.dumps(sealed({**config, **values})))


@pytest.mark.parametrize("include_held_out", [False, True])
def test_an_export_recommends_what_the_run_does(run, exported, include_held_out):
    users = run.split.train.user_ids.tolist()
    loaded = bn.load_export(exported, index=False)
    how = {"include_held_out": include_held_out}
    assert lists(loaded, users, **how) == lists(run, users, **how)


def test_an_export_recommends_to_all_users_what_the_run_does(run, exported):
    for loaded in (bn.load_export(exported), bn.load_export(exported, index=False)):
        assert loaded.recommend_all(k=7).equals(run.recommend_all(k=7))
    how = {"k": 3, "users": [5, 2, -1], "only": ["film 1", "film 2", "film 3"], "unknown": "skip", "include_seen": True}
    assert loaded.recommend_all(**how).equals(run.recommend_all(**how))


@pytest.mark.parametrize("baseline", ["MostPopular", "ItemKNN", "EASE", "GFCF"])
def test_baselines_are_exported_with_what_they_have(data, tmp_path, baseline):
    fitted = bn.fit(getattr(bn.baselines, baseline)(), data, progress=False)
    users = data.train.user_ids[:20].tolist()
    assert lists(bn.load_export(fitted.export(tmp_path / "model")), users) == lists(fitted, users)
    card = (tmp_path / "model" / "README.md").read_text()
    assert "The model samples no negatives" in card
    assert ("weights between items" in card) == (baseline != "MostPopular")


def test_other_programs_read_vectors_and_ids(run, exported):
    arrays = load_file(exported / "model.safetensors")
    users, items = (pl.read_parquet(exported / f"{name}.parquet")["id"] for name in ("users", "items"))
    assert (users.dtype, items.dtype) == (pl.Int64, pl.String)
    user = 5
    seen = run.split.known.row(user)
    scores = arrays["items"] @ arrays["users"][user]
    scores[seen] = -np.inf
    best = [items[int(item)] for item in np.argsort(-scores)[:5]]
    assert best == [item for item, _ in run.recommend(users[user], k=5)]


def test_attributes_of_users_are_not_exported(tmp_path):
    data = bn.Interactions.from_pairs(
        [1, 1, 2, 2, 3, 3], list("abacbc"), user_columns={"age": {1: 30, 2: 40, 3: 50}}, name="people"
    )
    run = bn.fit(bn.baselines.MostPopular(), bn.split(data, test=0.3, seed=0), progress=False)
    folder = run.export(tmp_path / "model")
    assert pl.read_parquet(folder / "users.parquet").columns == ["id"]


def test_the_card_has_the_header_of_the_hub_and_the_numbers_of_the_run(run, exported):
    _, header, body = (exported / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    head = yaml.safe_load(header)
    assert (head["library_name"], head["license"]) == ("bayesneg", "unknown")
    (result,) = head["model-index"][0]["results"]
    found = {metric["type"]: metric["value"] for metric in result["metrics"]}
    assert found["ndcg@20"] == run.record.final["ndcg@20"]
    low, high = run.record.intervals["ndcg@20"]
    assert f"| NDCG@20 | {found['ndcg@20']:.4f} | {low:.4f} to {high:.4f} |" in body
    assert run.split.fingerprint in body
    assert f"(TNR) | {run.record.last('tnr'):.4f} |" in body
    assert "licence of the data is unknown" in body
    index = json.loads((exported / "config.json").read_text())["index"]
    assert f"| recall@10 | {index['recall']['10']:.4f} |" in body


@pytest.mark.parametrize(
    ("dataset", "given", "licence", "said"),
    [
        ("ml-100k", None, "other", "GroupLens"),
        ("kuairec", None, "cc-by-sa-4.0", "CC BY-SA 4.0"),
        ("gowalla", None, "unknown", "none stated"),
        ("gowalla", "cc-by-4.0", "cc-by-4.0", "`cc-by-4.0`"),
        ("mine", None, "unknown", "unknown: it was read from a file"),
    ],
)
def test_the_card_gives_the_licence_of_the_data(dataset, given, licence, said):
    record = bn.RunRecord(label="RNS", seed=0, dataset=dataset)
    card = model_card(record, Contents({}, has_vectors=True, has_interactions=True, item_index=None, licence=given))
    assert yaml.safe_load(card.split("---\n")[1])["license"] == licence
    assert said in card


def test_a_label_cannot_break_the_card():
    record = bn.RunRecord(
        label='x"\n---\n# new', seed=0, dataset="a|b\n---\nlicense: mit", final={"ndcg@5": 0.1}, model="M: {x}"
    )
    card = model_card(record, Contents({}, has_vectors=True, has_interactions=False, item_index=None, licence=None))
    head = yaml.safe_load(card.split("\n---\n")[0].removeprefix("---\n"))
    assert head["license"] == "unknown"
    assert head["model-index"][0]["results"][0]["dataset"]["name"] == record.dataset
    assert "\n# new" not in card
    assert "| dataset | a\\|b --- license: mit |" in card


def test_the_index_gives_nearly_the_exact_lists_with_exact_scores(run, exported):
    by_index = bn.load_export(exported)
    assert by_index.index is not None
    users = [
        user
        for user in run.split.train.user_ids.tolist()
        if len(run.split.known.row(user)) + 20 < 0.25 * run.split.train.n_items
    ]
    assert users
    hits = 0
    for user in users:
        found, exact = by_index.recommend(user, k=20), dict(run.recommend(user, k=run.split.train.n_items))
        assert len(found) == 20
        assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
        for item, score in found:  # known items are not in ``exact``
            assert score == pytest.approx(exact[item], abs=1e-5)
        hits += len({item for item, _ in found} & set(list(exact)[:20]))
    assert hits / (20 * len(users)) > 0.95
    assert json.loads((exported / "config.json").read_text())["index"]["recall"]["10"] > 0.95


def test_recall_is_that_of_the_lists(monkeypatch):
    """An index that always answers with the first items finds those of the exact list that are among them."""
    rng = np.random.default_rng(0)
    users, items = (rng.standard_normal((n, 4)).astype(np.float32) for n in (30, 200))
    seen = random_interactions(rng, 30, 200, most=0.1)
    index = ItemIndex(items, graph=None)
    monkeypatch.setattr(ItemIndex, "best", lambda self, vector, excluded, k: (np.arange(50), None))
    scores = users @ items.T
    for user in range(30):
        scores[user, seen.row(user)] = -np.inf
    expected = np.mean(np.argsort(-scores, axis=1)[:, :10] < 50)
    found = index.recall(users, seen, (10, 100))
    assert found == {"recall": {"10": pytest.approx(expected)}, "n_lists": 30, "n_searched_exactly": 0}


def test_users_who_know_much_of_the_catalogue_are_searched_exactly(run, exported):
    by_index = bn.load_export(exported)
    assert by_index.index.best(by_index.run.scorer.users[0], np.arange(70), 20) is None
    user = run.split.train.user_ids[0].item()
    assert by_index.recommend(user, k=100) == run.recommend(user, k=100)


def test_without_interactions_nothing_is_excluded(run, tmp_path):
    folder = run.export(tmp_path / "model", interactions=False)
    assert not (folder / "split.parquet").exists()
    loaded, scores = bn.load_export(folder), run.scorer.score_all(np.array([7]))[0]
    user = run.split.train.user_ids[7].item()
    best = [run.split.train.item_ids[item] for item in np.argsort(-scores)[:10]]
    assert [item for item, _ in loaded.recommend(user, k=10)] == best
    assert "nothing is excluded" in (folder / "README.md").read_text()


@pytest.mark.parametrize(
    "name", ["model.safetensors", "users.parquet", "split.parquet", "record.json", "index.usearch"]
)
def test_a_missing_or_changed_file_gets_a_sentence(copy, name):
    (copy / name).write_bytes((copy / name).read_bytes()[:-1] + b"?")
    with pytest.raises(InputError, match=f"{name} .*is not the file that was exported.*export the run again"):
        bn.load_export(copy)
    (copy / name).unlink()
    with pytest.raises(InputError, match=f"{name} is missing; the export is incomplete"):
        bn.load_export(copy)


def test_an_index_of_other_vectors_gets_a_sentence_and_the_way_without_it(run, copy, tmp_path):
    config, n = json.loads((copy / "config.json").read_text()), run.split.train.n_items
    ItemIndex.build(run.scorer.items[:-1]).save(copy / "index.usearch")
    with pytest.raises(InputError, match=r"does not fit the vectors.*index=False"):
        bn.load_export(copy)
    config["files"]["index.usearch"]["sha256"] = file_digest(copy / "index.usearch")
    changed(copy, files=config["files"])
    with pytest.raises(InputError, match=rf"index of {n - 1} vectors of dimension 8, the export has {n}"):
        bn.load_export(copy)
    (copy / "index.usearch").write_bytes(b"no index")
    config["files"]["index.usearch"]["sha256"] = file_digest(copy / "index.usearch")
    changed(copy, files=config["files"])
    with pytest.raises(InputError, match="is no index of usearch"):
        bn.load_export(copy)
    changed(copy, index={**config["index"], "vectors_sha256": "of others"})
    with pytest.raises(InputError, match="was built for other vectors"):
        bn.load_export(copy)
    user = run.split.train.user_ids[0].item()
    assert bn.load_export(copy, index=False).recommend(user) == run.recommend(user)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (None, "holds no export: config.json is missing"),
        ("{", "cannot be read as JSON"),
        ('{"model_type": "bert"}', "is not that of a bayesneg export"),
        ("[]", "is not that of a bayesneg export"),
        ('{"format": "bayesneg-export", "schema": 9}', "has schema 9, this version of bayesneg reads schema 1"),
        ('{"format": "bayesneg-export", "schema": 1}', "is incomplete"),
    ],
)
def test_a_foreign_folder_gets_a_sentence(tmp_path, config, expected):
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    with pytest.raises(InputError, match=expected):
        bn.load_export(tmp_path)


def test_a_flipped_bit_in_the_config_is_refused(copy):
    path = copy / "config.json"
    whole, said = path.read_bytes(), []
    right = {key: value for key, value in json.loads(whole).items() if key != "sha256"}
    for place in range(3, len(whole), len(whole) // 25):
        content = bytearray(whole)
        content[place] ^= 1
        path.write_bytes(content)
        try:
            found = bn.load_export(copy)
        except InputError as error:
            said.append(str(error))
        else:  # the name of the digest was changed, and nothing else
            assert {key: found.config[key] for key in right} == right
    assert len(said) > 20
    assert all(str(copy) in sentence for sentence in said)


def test_a_config_cannot_name_files_elsewhere(copy):
    config = json.loads((copy / "config.json").read_text())
    changed(copy, files={**config["files"], "../secret": {"bytes": 1, "sha256": ""}})
    with pytest.raises(InputError, match="not part of an export"):
        bn.load_export(copy)


def test_a_run_is_not_taken_for_an_export(run, tmp_path):
    folder = run.save(tmp_path / "run")
    with pytest.raises(InputError, match="holds a run, not an export"):
        bn.load_export(folder)
    with pytest.raises(InputError, match="exists and holds no export"):
        run.export(folder, overwrite=True)


def test_an_existing_export_is_replaced_only_on_request(run, copy):
    before = sorted(copy.parent.iterdir())
    with pytest.raises(InputError, match="already holds an export"):
        run.export(copy)
    (copy / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds notes\.txt, which is not part of an export"):
        run.export(copy, overwrite=True)
    (copy / "notes.txt").unlink()
    run.export(copy, overwrite=True)
    assert not (copy / "index.usearch").exists()
    assert bn.load_export(copy).index is None
    assert sorted(copy.parent.iterdir()) == before


def test_an_export_that_fails_leaves_nothing(run, copy, monkeypatch, tmp_path):
    def broken(*_):
        raise OSError("disk full")

    monkeypatch.setattr("bayesneg.runs.exports.exporting.model_card", broken)
    before, content = sorted(tmp_path.iterdir()), sorted(copy.iterdir())
    with pytest.raises(OSError, match="disk full"):
        run.export(tmp_path / "new")
    with pytest.raises(OSError, match="disk full"):
        run.export(copy, overwrite=True)
    assert (sorted(tmp_path.iterdir()), sorted(copy.iterdir())) == (before, content)


def test_an_export_that_cannot_be_put_in_place_leaves_the_old_one(run, copy, monkeypatch):
    rename, content = Path.rename, sorted(copy.iterdir())

    def broken(self, target):
        if self.name.endswith(".part"):
            raise OSError("no rights")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", broken)
    with pytest.raises(OSError, match="no rights"):
        run.export(copy, overwrite=True)
    assert list(copy.parent.iterdir()) == [copy]
    assert sorted(copy.iterdir()) == content


def test_what_cannot_be_exported_is_refused_before_anything_is_written(data, run, tmp_path, monkeypatch):
    ease = bn.fit(bn.baselines.EASE(), data, progress=False)
    with pytest.raises(InputError, match=r"index needs a model with vectors.*EASE has item–item weights"):
        ease.export(tmp_path / "model", index="usearch")
    with pytest.raises(InputError, match="EASE scores a user from its interactions"):
        ease.export(tmp_path / "model", interactions=False)
    with pytest.raises(InputError, match="index='faiss' is not supported; use usearch"):
        run.export(tmp_path / "model", index="faiss")
    with pytest.raises(InputError, match="licence must be an identifier"):
        run.export(tmp_path / "model", licence=" ")
    monkeypatch.setattr(item_index, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'bayesneg\[index\]'"):
        run.export(tmp_path / "model", index="usearch")
    assert list(tmp_path.iterdir()) == []


def test_a_model_without_vectors_is_refused(run, tmp_path):
    class Scores:
        n_users, n_items = run.scorer.n_users, run.scorer.n_items

        def score_all(self, users):
            return run.scorer.score_all(users)

    with pytest.raises(InputError, match="gives scores without vectors"):
        bn.Run(Scores(), run.split, run.record).export(tmp_path / "model")


def test_a_user_without_training_interactions_is_searched_exactly(run, tmp_path, monkeypatch):
    """The vector of such a user says nothing, and a model may rank by something else."""
    train = run.split.train.select(run.split.train.users != 5)
    split = bn.Split(train=train, test=run.split.test, validation=run.split.validation)
    without = bn.fit(bn.MF(dim=8), split, bn.RNS(), epochs=1, progress=False)
    loaded = bn.load_export(without.export(tmp_path / "model", index="usearch"))
    monkeypatch.setattr(ItemIndex, "best", lambda *_: pytest.fail("searched by the index"))
    user = train.user_ids[5].item()
    assert loaded.recommend(user, k=3) == loaded.run.recommend(user, k=3)
