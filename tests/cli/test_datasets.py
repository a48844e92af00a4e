"""``bayesneg data``."""

from __future__ import annotations


def test_list_names_every_built_in_dataset_and_where_it_lies(bayesneg, place):
    (place / "ml-100k").mkdir()
    found = bayesneg("data", "list", "--data-dir", place, "--json").json["datasets"]
    folders = {line["name"]: line["folder"] for line in found}
    assert folders["ml-100k"] == str(place / "ml-100k")
    assert folders["ml-1m"] is None
    said = bayesneg("data", "list", "--data-dir", place)
    assert said.err == ""
    assert all(name in said.out for name in folders)


def test_describe_counts(bayesneg, place):
    (place / "data.csv").write_text("user,item,rating\na,x,5\na,x,4\na,y,5\nb,x,1\nb,z,5\n")
    found = bayesneg("data", "describe", "data.csv", "--min-rating", 2, "--json").json
    assert (found["interactions"], found["users"], found["items"]) == (3, 2, 3)
    assert (found["duplicates_collapsed"], found["below_min_rating"]) == (1, 1)
    assert found["density"] == 0.5
    assert found["interactions_per_user"] == {"least": 1.0, "median": 1.5, "most": 2.0}


def test_describe_shows_the_same_to_a_person(bayesneg, place):
    (place / "data.csv").write_text("customer,sku\na,x\na,y\nb,x\n")
    done = bayesneg("data", "describe", "data.csv", "--user-column", "customer", "--item-column", "sku")
    assert (done.code, done.err) == (0, "")
    assert "duplicates collapsed" in done.out
    assert "median 2" in done.out


def test_get_refuses_what_it_cannot_fetch(bayesneg, place):
    assert "'netflix'" in bayesneg("data", "get", "netflix", "--data-dir", place).error
    assert list(place.iterdir()) == []
