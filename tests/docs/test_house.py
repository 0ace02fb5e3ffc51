"""The picture of the rooms is the one that the import contract gives, and nothing in it overlaps."""

from __future__ import annotations

import itertools
import re
import tomllib

from tests.docs.test_documentation import DOCS, ROOT, load

house = load(DOCS / "house.py")


def test_the_picture_is_up_to_date():
    assert house.PICTURE.read_text(encoding="utf-8") == house.draw(), "run `python docs/house.py`"


def test_every_room_of_the_package_has_its_place_and_its_line_in_the_table():
    package = ROOT / "src" / "tightrope"
    rooms = {path.parent.name for path in package.glob("*/__init__.py")}
    rooms |= {path.stem for path in package.glob("*.py") if not path.stem.startswith("__")}
    table = re.findall(r"^\| `(\w+)` \|", (DOCS / "design.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(house.places()) == rooms
    assert sorted(table) == sorted(rooms)


def test_higher_layers_stand_higher_and_no_two_rooms_overlap():
    places = house.places()
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    layers = [re.findall(r"tightrope\.(\w+)", layer) for layer in contract[0]["layers"]]
    for upper, lower in itertools.pairwise(layers):
        assert max(places[room].bottom for room in upper) < min(places[room].y for room in lower)
    for one, other in itertools.combinations(places.values(), 2):
        assert one.right < other.x or other.right < one.x or one.bottom < other.y or other.bottom < one.y


def test_the_way_goes_through_the_rooms_that_the_page_tells_of_in_that_order():
    text = (DOCS / "design.md").read_text(encoding="utf-8")
    assert re.findall(r"^\d\. \*\*`(\w+)`", text, re.MULTILINE) == house.STOPS
