import csv

from penstock.demo.fleet import check_digit, owners, strangers, write_owners


def test_a_number_has_seventeen_characters_and_the_check_digit_they_ask_for():
    for vin in [owner.VIN for owner in owners(500, 1)] + strangers(50, 1):
        assert len(vin) == 17
        assert not set(vin) - set("0123456789ABCDEFGHJKLMNPRSTUVWXYZ")
        assert vin[8] == check_digit(vin)


def test_the_check_digit_is_that_of_a_known_number():
    assert check_digit("1M8GDM9AXKP042788") == "X"
    assert check_digit("11111111111111111") == "1"


def test_every_owner_has_a_car_of_their_own_and_strangers_have_none():
    listed = owners(1000, 7)
    assert len({owner.VIN for owner in listed}) == 1000
    assert not {owner.VIN for owner in listed} & set(strangers(10, 7))


def test_the_same_seed_gives_the_same_owners():
    assert owners(20, 3) == owners(20, 3)
    assert owners(20, 3) != owners(20, 4)


def test_the_table_of_owners_is_csv_with_a_header(tmp_path):
    write_owners(str(tmp_path / "owners.csv"), owners(5, 1))
    with open(tmp_path / "owners.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["VIN"] for row in rows] == [owner.VIN for owner in owners(5, 1)]
    assert list(rows[0]) == ["VIN", "name", "city", "policy", "insured_since"]
