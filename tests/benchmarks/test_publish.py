"""A page and its pictures are kept while they say the same, and compact pictures look the same."""

import pytest

from benchmarks.pages.publish import compact, keep, keep_pictures, looks_like


def test_a_picture_is_stale_when_something_in_it_can_be_seen_to_differ(tmp_path):
    drawing = '<path id="m{name}" d="M 10.{digit} 20" style="stroke: {ink}"/><use href="#m{name}"/><text>{tick}</text>'
    look = {"name": "a1", "digit": 1, "ink": "#111111", "tick": "0.32"}

    def drawn(**changed):
        return lambda folder: (folder / "one.svg").write_text(drawing.format(**{**look, **changed}), encoding="utf-8")

    images = tmp_path / "images"
    keep_pictures(images, drawn(), check=False)
    keep_pictures(images, drawn(name="b2", digit=3), check=True)  # another machine's last bits
    for changed in ({"ink": "#222222"}, {"digit": 9}, {"tick": "0.12"}, {"tick": 'id="m"'}):
        with pytest.raises(SystemExit, match=r"images is out of date: one\.svg"):
            keep_pictures(images, drawn(**changed), check=True)
    (images / "old.svg").write_text("", encoding="utf-8")
    with pytest.raises(SystemExit):
        keep_pictures(images, drawn(), check=True)
    keep_pictures(images, drawn(digit=9), check=False)
    assert [path.name for path in images.iterdir()] == ["one.svg"]
    assert "10.9" in (images / "one.svg").read_text(encoding="utf-8")


def test_a_page_that_differs_is_an_error_when_checked(tmp_path):
    path = tmp_path / "tables" / "page.md"
    keep(path, "one", check=False)
    keep(path, "one", check=True)
    with pytest.raises(SystemExit, match=r"page\.md is out of date"):
        keep(path, "two", check=True)


def test_a_compact_picture_is_shorter_and_looks_the_same():
    head = '<?xml version="1.0"?>\n<!DOCTYPE svg>\n'
    drawing = '<svg viewBox="0 0 10 10"><metadata>x</metadata>\n  <path d="M 1.2345 2 \nL 3.0001 4 \n"/>\n</svg>\n'
    short = compact(head + drawing)
    assert short == '<svg viewBox="0 0 10 10">\n<path d="M 1.2 2 L 3 4"/>\n</svg>\n'
    assert looks_like(compact(short), short)
