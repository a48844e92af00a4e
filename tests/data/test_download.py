"""Downloads, from a server on this machine; nothing reaches the network."""

from __future__ import annotations

import gc
import hashlib
import io
import threading
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bayesneg.data import catalogue
from bayesneg.data.catalogue import BUILT_IN, Archive, download
from bayesneg.data.load import load
from bayesneg.errors import DataError, InputError

# pooch leaves the connection of a failed download to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
RATINGS = b"1\t10\t5\t100\n2\t20\t3\t200\n"


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


CONTENT = zipped({"ml-100k/u.data": RATINGS, "ml-100k/README": b"terms", "../evil": b"x"})


@dataclass
class Served:
    """What the server answers, how many bytes of it, and what it was asked for."""

    address: str = ""
    content: bytes | None = CONTENT
    n_bytes: int | None = None
    asked: list[str] = field(default_factory=list)


@pytest.fixture(scope="module", autouse=True)
def _collect_connections() -> Iterator[None]:
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def server(monkeypatch) -> Iterator[Served]:
    served = Served()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            if served.content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(served.content)))
            self.end_headers()
            self.wfile.write(served.content[: served.n_bytes])

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        served.address = f"http://127.0.0.1:{running.server_address[1]}/ml-100k.zip"
        use(monkeypatch, served.address)
        yield served
        running.shutdown()
        thread.join()


def use(monkeypatch, url: str) -> None:
    archive = Archive("the owner", url, hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setitem(BUILT_IN, "ml-100k", replace(BUILT_IN["ml-100k"], archive=archive))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "not yet" / "data"


def files(home: Path) -> list[str]:
    return sorted(path.name for path in home.rglob("*")) if home.exists() else []


def test_the_files_of_the_archive_arrive_and_can_be_loaded(server, home):
    done = download("ml-100k", data_dir=home)
    assert (done.folder, done.already_there) == (home / "ml-100k", False)
    assert files(home) == ["README", "ml-100k", "ml-100k.zip", "u.data"]
    assert not list(home.parent.glob("evil*"))
    assert len(load("ml-100k", data_dir=home)) == 2


def test_progress_counts_bytes_up_to_the_total(server, home):
    calls: list[tuple[int, int | None]] = []
    download("ml-100k", data_dir=home, progress=lambda *call: calls.append(call))
    assert calls[-1] == (len(CONTENT), len(CONTENT))


def test_a_folder_that_is_there_is_not_downloaded_again(server, home):
    (home / "ml-100k").mkdir(parents=True)
    (home / "ml-100k" / "u.data").write_text("mine")
    assert download("ml-100k", data_dir=home).already_there
    assert (home / "ml-100k" / "u.data").read_text() == "mine"
    assert server.asked == []


def test_an_archive_put_there_by_hand_is_unpacked(server, home):
    home.mkdir(parents=True)
    (home / "ml-100k.zip").write_bytes(CONTENT)
    assert not download("ml-100k", data_dir=home).already_there
    assert (home / "ml-100k" / "u.data").read_bytes() == RATINGS
    assert server.asked == []


@pytest.mark.parametrize("content", [b"<html>log in first</html>", zipped({"ml-100k/u.data": b"other"})])
def test_another_sha256_leaves_nothing(server, home, content):
    server.content = content
    with pytest.raises(DataError, match=r"its sha256 is not the known one\); .* put it there as .*ml-100k\.zip"):
        download("ml-100k", data_dir=home)
    assert files(home) == []


def test_an_interruption_leaves_nothing(server, home):
    def interrupt(done: int, total: int | None) -> None:
        assert files(home) != []
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download("ml-100k", data_dir=home, progress=interrupt)
    assert files(home) == []


def test_a_download_that_breaks_off_leaves_nothing(server, home):
    server.n_bytes = len(CONTENT) // 2
    with pytest.raises(DataError, match=r"could not be downloaded .* repeat the command"):
        download("ml-100k", data_dir=home)
    assert files(home) == []


def test_a_missing_file_is_named_with_the_way_out(server, home):
    server.content = None
    with pytest.raises(DataError, match=r"ml-100k\.zip could not be downloaded \(404 .* with a browser"):
        download("ml-100k", data_dir=home)


def test_a_server_that_is_not_there_is_an_error(home, monkeypatch):
    monkeypatch.setattr(catalogue, "TIMEOUT", 2.0)
    use(monkeypatch, "http://127.0.0.1:9/ml-100k.zip")
    with pytest.raises(DataError, match="could not be downloaded"):
        download("ml-100k", data_dir=home)


def test_other_datasets_say_how_to_get_them(home):
    with pytest.raises(InputError, match="yahoo-r3 cannot be downloaded, only ml-100k, ml-1m can; ask Yahoo"):
        download("yahoo-r3", data_dir=home)
    with pytest.raises(InputError, match="'netflix' is no built-in dataset"):
        download("netflix", data_dir=home)


def test_the_terms_name_what_the_owner_asks():
    for name in ("ml-100k", "ml-1m"):
        terms = BUILT_IN[name].terms
        assert all(word in terms for word in ("GroupLens", "research", "cite", "Harper and Konstan", name))
