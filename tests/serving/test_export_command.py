"""``bayesneg export``."""

from __future__ import annotations

import pytest

import bayesneg as bn


def test_export_writes_a_folder_that_is_read_back(bayesneg, run, saved, tmp_path):
    found = bayesneg("export", saved, tmp_path / "model", "--index", "usearch", "--json").json
    assert found["folder"] == str(tmp_path / "model")
    assert found["index"]["recall"]["10"] > 0.9
    user = run.split.train.user_ids[3].item()
    assert bn.load_export(tmp_path / "model", index=False).recommend(user) == run.recommend(user)


def test_export_says_what_was_written_and_what_to_mind(bayesneg, saved, tmp_path):
    done = bayesneg("export", saved, tmp_path / "model")
    assert done.code == 0
    assert "model.safetensors" in done.out
    assert "licence of the data is unknown: state it with --licence" in done.err
    assert "--no-interactions leaves them out" in done.err
    again = bayesneg("export", saved, tmp_path / "model", "--force", "--licence", "mit", "--no-interactions")
    assert again.code == 0
    assert "licence" not in again.err
    assert "--no-interactions" not in again.err
    assert "note: without the interactions the model recommends items that users already have" in again.err
    assert "items that users already have are not excluded" in repr(bn.load_export(tmp_path / "model"))
    for command in ("evaluate", "recommend"):
        said = bayesneg(command, tmp_path / "model", *(["--user", "1"] if command == "recommend" else [])).error
        assert "is an export, not a run; bayesneg serve and bn.load_export take it" in said
    card = (tmp_path / "model" / "README.md").read_text()
    assert 'license: "mit"' in card
    assert "The vector of a user is learned from the user's interactions" in card


def test_an_item_model_says_that_its_weights_tell_about_users(bayesneg, data, tmp_path):
    bn.fit(bn.baselines.EASE(), data, progress=False).save(tmp_path / "run")
    done = bayesneg("export", tmp_path / "run", tmp_path / "model")
    assert "has the interactions of the users: EASE needs them to score a user" in done.err
    assert "--no-interactions" in done.err
    card = (tmp_path / "model" / "README.md").read_text()
    assert "`split.parquet` has the interactions of the users" in card
    assert "computed from the items that users have in common" in card
    assert "The vector of a user" not in card


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nowhere", "NEW"], "nowhere holds no run"),
        (["RUN", "RUN"], "exists and holds no export; choose another folder"),
        (["RUN", "FILE"], "is a file; name a folder"),
        (["RUN", "NEW", "--index", "annoy"], "--index annoy is not supported; use usearch"),
        (["RUN", "EXPORT"], "already holds an export; choose another folder, or --force"),
    ],
)
def test_a_wrong_argument_gets_a_sentence_and_nothing_is_written(
    bayesneg, saved, exported, tmp_path, arguments, expected
):
    (tmp_path / "file").write_text("")
    named = {"RUN": saved, "NEW": tmp_path / "new", "FILE": tmp_path / "file", "EXPORT": exported}
    assert expected in bayesneg("export", *(named.get(argument, argument) for argument in arguments)).error
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
