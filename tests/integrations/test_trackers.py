"""MLflow against an SQLite store, and Weights & Biases offline: what is logged is read back."""

from __future__ import annotations

import time

import pytest

import bayesneg as bn
from bayesneg.errors import InputError
from tests.integrations.needs import needs

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.filterwarnings("error:.*is not used any more")]


@pytest.fixture(scope="module")
def split():
    return bn.split(bn.synthetic(60, 80, seed=3), test=0.2, validation=0.2, seed=0)


def fit(split, **more):
    given = {"epochs": 3, "progress": False} | more
    return bn.fit(bn.MF(dim=4, learning_rate=0.05), split, bn.BNS(candidates=3), **given)


class TestMLflow:
    pytestmark = needs("mlflow", "sqlalchemy")

    def client(self, uri):
        from mlflow.tracking import MlflowClient

        return MlflowClient(tracking_uri=uri)

    def runs(self, uri, experiment="bayesneg"):
        client = self.client(uri)
        return client.search_runs([client.get_experiment_by_name(experiment).experiment_id])

    def curve(self, uri, run, name):
        return [(each.step, each.value) for each in self.client(uri).get_metric_history(run.info.run_id, name)]

    @pytest.fixture
    def uri(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)  # where MLflow would put artifacts
        return f"sqlite:///{tmp_path}/mlflow.db"

    def test_parameters_epochs_final_metrics_and_tags_are_in_the_store(self, split, uri):
        run = fit(split, observer=bn.tracking.MLflow(uri, experiment="movies"), label="BNS")
        (found,) = self.runs(uri, "movies")
        assert (found.info.status, found.info.run_name) == ("FINISHED", "BNS")
        assert found.data.params["sampler.candidates"] == "3"
        assert found.data.params["model"] == "mf"
        assert found.data.tags["fingerprint"] == split.fingerprint
        assert self.curve(uri, found, "validation_ndcg_at_20") == list(
            run.record.at_epochs("validation_ndcg@20").items()
        )
        assert found.data.metrics["final/ndcg_at_20"] == pytest.approx(run.record.final["ndcg@20"])

    def test_resuming_continues_the_run_without_doubled_epochs(self, split, uri, tmp_path):
        def stop(line):
            if line["epoch"] == 3:
                raise KeyboardInterrupt

        given = {"epochs": 4, "out": tmp_path / "run", "checkpoint_every": 4}
        with pytest.raises(KeyboardInterrupt):
            fit(split, observer=bn.tracking.MLflow(uri), progress=stop, **given)
        assert self.runs(uri)[0].info.status == "KILLED"
        (tmp_path / "run" / "checkpoint.safetensors").unlink()  # as after a crash: epochs 1 to 3 are trained again
        run = fit(split, observer=bn.tracking.MLflow(uri), resume=True, **given)
        runs = self.runs(uri)
        assert len(runs) == 2, "nothing was done yet, so it is a new run"
        fit(split, observer=bn.tracking.MLflow(uri), resume=True, **(given | {"epochs": 6}))
        (found,) = [each for each in self.runs(uri) if each.info.status == "FINISHED"]
        assert [step for step, _ in self.curve(uri, found, "tnr")] == [1, 2, 3, 4, 5, 6]
        assert [value for _, value in self.curve(uri, found, "tnr")][:4] == list(run.record.at_epochs("tnr").values())

    def test_a_store_that_is_lost_during_training_costs_no_epoch(self, split, uri, tmp_path):
        def lose(line):
            (tmp_path / "mlflow.db").write_bytes(b"no database")

        with pytest.warns(UserWarning, match="failed in epoch 2 and is not used any more"):
            run = fit(split, observer=bn.tracking.MLflow(uri), progress=lose)
        assert len(run.record.epochs) == 3

    def test_a_store_that_mlflow_refuses_is_one_sentence(self, split, uri, tmp_path):
        (tmp_path / "text.db").write_text("this is no database, however long it may be " * 99)
        for bad in (f"sqlite:///{tmp_path}/text.db", "gopher://x"):
            with pytest.raises(InputError, match=r"cannot be used: .*; a database file always works") as caught:
                fit(split, observer=bn.tracking.MLflow(bad))
            assert "\n" not in str(caught.value)


class TestWeightsAndBiases:
    pytestmark = needs("wandb")

    def test_an_offline_run_holds_config_epochs_and_summary(self, split, tmp_path):
        run = fit(split, observer=bn.tracking.WandB("project", mode="offline", folder=tmp_path), out=tmp_path / "run")
        (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
        assert file.stem.removeprefix("run-") in (tmp_path / "run" / "tracking.json").read_text()
        texts = [b"sampler.candidates", b"validation_ndcg@20", b"final/ndcg@20", split.fingerprint.encode()]
        texts.append(repr(run.record.epochs[1]["tnr"]).encode())
        until = time.monotonic() + 20  # a process of the library writes the file, and may end a moment after us
        while (missing := [text for text in texts if text not in file.read_bytes()]) and time.monotonic() < until:
            time.sleep(0.1)
        assert not missing
