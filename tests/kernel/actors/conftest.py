import pytest

from tests.kernel.actors.watched import WatchedHouse


@pytest.fixture
def house(tmp_path):
    house = WatchedHouse(tmp_path)
    house.settle(house.scan())
    yield house
    house.close()
