import pytest

from tests.actors.watched import WatchedHouse


@pytest.fixture
def house(tmp_path):
    house = WatchedHouse(tmp_path)
    house.settle(house.scan())
    yield house
    house.close()
