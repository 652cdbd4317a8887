"""`migrate`."""


def test_shows_and_writes(run, tmp_path):
    path = tmp_path / "old.py"
    path.write_text("from simple_elmo import ElmoModel\n")
    shown = run("migrate", path)
    assert "+from polyseme.compat.simple_elmo import ElmoModel" in shown.out
    assert "--write changes the file" in shown.out
    assert run("migrate", path, "--write", "--json").json[0]["written"]
    assert path.read_text() == "from polyseme.compat.simple_elmo import ElmoModel\n"
