"""`python -m benchmarks`: arguments, arithmetic, turns, tables. Nothing here depends on a time."""

import re
from argparse import ArgumentTypeError
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as command_line, contestants, machine, report
from benchmarks.cases import (
    FAMILIES, GROUPS, Anew, Case, Figures, Loop, Skipped, chosen, group_named,
)
from benchmarks.clock import Time
from benchmarks.figures import Row, exponent, geometric_mean, means, series, spread, three
from benchmarks.measure import Effort, Findings, measure
from benchmarks.systems import system
from benchmarks.worker import Worker, answer


def parsed(*arguments):
    return command_line.parser().parse_args(arguments)


# Arguments ---------------------------------------------------------------------------------------

def test_systems_and_groups_are_named_with_commas_each_once():
    options = parsed("--against", "jax,torch,jax", "--only", "eager,start", "--python-jax", "/j")
    assert (options.against, options.only) == (["jax", "torch"], ["eager", "start"])
    players = command_line.contestants(options)
    assert [(p.label, p.command[0] == "/j") for p in players] == [
        ("olympus", False), ("jax", True), ("torch", False)]


def test_an_unknown_name_is_told_with_those_there_are():
    with pytest.raises(ArgumentTypeError, match="mlx given; names of jax, numpy, torch, scipy"):
        command_line.others_of("jax,mlx")


def test_another_clone_is_a_contestant_that_imports_from_there(tmp_path):
    (tmp_path / "olympus").mkdir()
    (tmp_path / "olympus/__init__.py").write_text("__version__ = 'of before'\n")
    _, before = command_line.contestants(parsed("--before", str(tmp_path)))
    assert (before.label, before.library, before.version()) == ("before", "olympus", "of before")
    before.close()


def test_quick_means_fewer_rounds_and_an_end():
    quick, whole = (command_line.effort_of(parsed(*words)) for words in (["--quick"], []))
    assert quick.rounds < whole.rounds and quick.until < whole.until
    assert command_line.effort_of(parsed("--quick", "--rounds", "7")).rounds == 7


def test_a_library_that_is_not_there_ends_the_run_by_its_name():
    missing = contestants.Contestant("torch", "no_such_library", command_line.sys.executable)
    with pytest.raises(SystemExit, match="cannot import no_such_library; name one that can with"):
        command_line.versions_of([missing])
    missing.close()


def test_a_process_that_takes_too_long_is_given_up_and_the_next_question_starts_another():
    player = contestants.Contestant("olympus", "olympus", command_line.sys.executable, timeout=0.0)
    trees = group_named("trees").cases["map"]
    assert player.sample(trees) == {"skipped": "given up after 0 s"}
    player.timeout = 60.0
    assert "values" in player.sample(trees)
    player.close()


# Arithmetic --------------------------------------------------------------------------------------

def row(case=None, **rounds):
    made = Row(case or Case("eager", "x"))
    made.rounds = {label: [Time(10 * x, x) for x in values] for label, values in rounds.items()}
    return made


def test_ratios_are_of_one_round_and_their_median_and_ends_are_shown():
    found = row(olympus=[1.0, 2.0, 4.0], jax=[3.0, 4.0, 4.0]).ratio("jax", "olympus", "cpu")
    assert found == (2.0, 1.0, 3.0) and str(found) == "2 [1–3]"
    assert row(olympus=[1.0]).ratio("jax", "olympus", "cpu") is None


def test_a_clock_is_chosen_and_memory_has_none():
    assert row(jax=[2.0]).value("jax", "wall") == 20.0
    memory = Row(Case("memory", "x"))
    memory.rounds = {"olympus": [2.0], "jax": [3.0]}
    assert memory.value("jax", "cpu") == 3.0 and memory.ratio("jax", "olympus", "cpu").low == 1.5
    memory.rounds = {"olympus": [0.1], "jax": [0.9]}
    assert memory.ratio("jax", "olympus", "cpu").low == 1.0     # less than one counts as one


def test_means_and_exponents_of_known_answers():
    assert geometric_mean([1.0, 10.0, 100.0]) == pytest.approx(10.0)
    assert spread([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)
    assert exponent([(n, 5 * n ** 1.5) for n in (1, 10, 100)]) == pytest.approx(1.5)
    rows = [row(olympus=[1.0], jax=[4.0]), row(olympus=[1.0], jax=[1.0]), row(olympus=[1.0])]
    assert means(rows, "jax", "olympus", "cpu") == (pytest.approx(2.0), 2)
    assert means(rows, "torch", "olympus", "cpu") is None
    assert list(map(three, (0.0341, 0.5, 1.2, 15.23, 152.3))) == ["0.034", "0.5", "1.2", "15.2",
                                                                  "152"]


def test_series_are_cases_that_differ_in_n():
    rows = [row(Case("growth", f"trace, n = {n}")) for n in (1, 10)] + [row()]
    assert series(rows) == {("trace", ""): [(1.0, rows[0]), (10.0, rows[1])]}


# Turns -------------------------------------------------------------------------------------------

class Player:
    """A contestant that answers from a list, by case."""

    def __init__(self, label, **answers):
        self.label, self.answers, self.asked = label, answers, []

    def plays(self, case):
        return case.name in self.answers

    def sample(self, case):
        self.asked.append(case.name)
        answers = self.answers[case.name]
        found = answers.pop(0) if isinstance(answers, list) else answers
        return found if isinstance(found, dict) else {"values": {"": [found, found]}}

    def stop(self):
        self.asked.append("stop")


ONCE = Effort(rounds=1, turns=1)
A, B, C = (Case("eager", name) for name in "abc")


def measured(cases, players, effort=ONCE):
    findings = Findings()
    measure(cases, players, effort, findings, lambda row: None)
    return findings


def test_the_least_of_the_turns_of_a_round_counts():
    player = Player("olympus", a=[3.0, 1.0, 2.0, 5.0, 4.0, 6.0])
    findings = measured([A], [player], Effort(rounds=2, turns=3))
    assert findings.rows[0].values("olympus", "cpu") == [1.0, 4.0]


def test_systems_take_turns_and_each_round_has_another_order_and_new_processes():
    order = []
    players = [Player(label, a=1.0, b=1.0) for label in ("x", "y")]
    for player in players:
        player.asked = SimpleNamespace(
            append=lambda what, label=player.label: order.append(f"{label} {what}"))
    measured([A, B], players, Effort(rounds=2, turns=1))
    assert order == ["x a", "y a", "x b", "y b", "x stop", "y stop",
                     "y a", "x a", "y b", "x b", "x stop", "y stop"]


def test_a_case_that_took_long_has_fewer_rounds():
    player = Player("olympus", a=1.0)
    measured([A], [player], Effort(rounds=3, turns=1, least=2, seconds=-1.0))
    assert player.asked == ["a", "stop", "a", "stop", "stop"]


def test_a_case_that_fails_is_reported_by_name_and_the_rest_goes_on():
    players = [Player("olympus", a=1.0, b={"error": "ValueError: no"}, c=2.0),
               Player("jax", a=2.0, b=2.0, c=2.0)]
    findings = measured([A, B, C], players)
    assert findings.errors == {("eager: b", "olympus"): "ValueError: no"}
    assert [(r.case.name, sorted(r.rounds)) for r in findings.rows] == [
        ("a", ["jax", "olympus"]), ("b", ["jax"]), ("c", ["jax", "olympus"])]
    text = report.Report(findings, ["olympus", "jax"], "cpu").text("machine")
    assert "- eager: b, Olympus: ValueError: no" in text and "| b | failed | 2 s |  |" in text


def test_what_fails_in_a_later_round_has_no_time():
    players = [Player("olympus", a=[1.0, 1.0]), Player("jax", a=[2.0, {"error": "OSError: gone"}])]
    findings = measured([A], players, Effort(rounds=2, turns=1))
    assert [*findings.errors] == [("eager: a", "jax")] and [*findings.rows[0].rounds] == ["olympus"]


def test_other_numbers_are_an_error_and_no_time():
    players = [Player("olympus", a={"values": {"": [1.0, 1.0]}, "sum": 100.0}),
               Player("jax", a={"values": {"": [1.0, 1.0]}, "sum": 100.5}),
               Player("torch", a={"values": {"": [1.0, 1.0]}, "sum": 90.0})]
    findings = measured([A], players)
    assert [*findings.errors] == [("eager: a", "torch")]
    assert "computes something else" in findings.errors["eager: a", "torch"]
    assert sorted(findings.rows[0].rounds) == ["jax", "olympus"]


def test_deeper_programs_are_not_tried_after_the_limit():
    deeper = Case("eager", "b")
    deeper.after = "a"
    slow, quick = Player("jax", a=20.0, b=1.0), Player("olympus", a=1.0, b=2.0)
    findings = measured([A, deeper], [quick, slow])
    assert slow.asked == ["a", "stop"] and quick.asked == ["a", "b", "stop"]
    assert findings.skipped == {("eager: b", "jax"): "not tried: a took more than 15 s"}


def test_when_time_is_up_what_is_left_is_named():
    findings = measured([A, B], [Player("olympus", a=1.0, b=1.0)], ONCE._replace(until=0.0))
    assert findings.left_out == [A, B] and not findings.rows


# Workers -----------------------------------------------------------------------------------------

def test_a_worker_answers_what_a_setup_raises(monkeypatch):
    from benchmarks.groups.eager import group
    case = Case("eager", "broken")
    monkeypatch.setitem(group.cases, "broken", case)
    worker = Worker(system("numpy"), 1e-4)
    request = {"group": "eager", "case": "broken", "fresh": False}
    for error, reply in ((ValueError("no\nmore"), {"error": "ValueError: no"}),
                         (Skipped("flax not installed"), {"skipped": "flax not installed"})):
        def setup(L, error=error):
            raise error
        case.setups["numpy"] = setup
        assert answer(worker, request) == reply


def test_a_worker_counts_calls_of_a_loop_and_makes_inputs_anew():
    made, ran, case = [], [], Case("eager", "counted")
    case.setups["numpy"] = lambda L: Anew(lambda: made.append(1) or 7, ran.append, count=3)
    worker = Worker(system("numpy"), 1e-4)
    first = worker.sample(case, fresh=False)
    worker.sample(case, fresh=False)
    assert len(made) == 7 and ran == [7] * 7 and set(first["values"]) == {""}     # one is to warm
    figures = Case("eager", "figures")
    figures.setups["numpy"] = lambda L: Figures({"step": 2.0})
    assert worker.sample(figures, fresh=True) == {"values": {"step": 2.0}}
    loop = Case("eager", "loop")
    loop.setups["numpy"] = lambda L: Loop(lambda: L.np.array([-3.0, 4.0]), check=True)
    assert worker.sample(loop, fresh=False)["sum"] == 7.0


def test_a_process_measures_a_group_of_olympus_alone(capsys):
    command_line.main(["--only", "trees", "--quick", "--rounds", "1"])
    shown = capsys.readouterr()
    rows = [line for line in shown.out.splitlines() if line.startswith("| flatten |")]
    assert len(rows) == 1 and "µs" in rows[0] and "Not measured" not in shown.out
    assert "trees:  map  " in shown.err


def test_every_case_has_a_setup_and_every_group_a_file():
    folder = contestants.ROOT / "benchmarks/groups"
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == {*GROUPS}
    for name in GROUPS:
        group = group_named(name)
        assert group.name == name and group.cases
        assert all(set(case.setups) <= set(FAMILIES) for case in group.cases.values())
        assert all(case.after in ("", *group.cases) for case in group.cases.values())
    assert len([*chosen([], quick=True)]) < len([*chosen([], quick=False)])


# Tables ------------------------------------------------------------------------------------------

def findings_of(*rows):
    found = Findings()
    found.rows = list(rows)
    return found


def test_where_another_is_ahead_is_bold_and_listed_with_the_largest_lead_first():
    fast, near, far = (row(case, olympus=[1.0], jax=[x], numpy=[y]) for case, x, y in (
        (A, 3.0, 0.5), (B, 0.97, 2.0), (C, 0.1, 1.0)))
    made = report.Report(findings_of(fast, near, far), ["olympus", "jax", "numpy"], "cpu")
    assert made.table([fast])[2] == "| a | 1 s | 3 s | 3 [3–3] | 500 ms | **0.5 [0.5–0.5]** |"
    ahead = [line.split(" | ")[0::2][:2] for line in made.behind()[2:]]
    assert ahead == [["| c", "JAX"], ["| a", "NumPy"]]
    assert made.behind()[2].endswith("| 100 ms | 1 s | 10 |")
    assert made.summary()[2] == "| Single operations on small arrays | 0.66 (3) | 1 (3) |"


def test_tables_are_put_between_markers_and_nowhere_else(tmp_path):
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    page.write_text("head\n<!-- benchmark eager -->\nold\n<!-- end -->\ntail\n"
                    "<!-- benchmark trace -->\nkept\n<!-- end -->\n")
    other.write_text("no marker\n")
    assert report.write([page, other], {"eager": ["| a |", "| b |"], "lower": ["| c |"]}) == [page]
    assert page.read_text() == ("head\n<!-- benchmark eager -->\n| a |\n| b |\n<!-- end -->\ntail\n"
                                "<!-- benchmark trace -->\nkept\n<!-- end -->\n")
    with pytest.raises(ValueError, match="benchmark eager -->"):
        report.between_markers("<!-- benchmark eager -->\n", {"eager": []})


def test_summaries_are_of_whole_runs():
    made = report.Report(findings_of(row(A, olympus=[1.0], jax=[2.0])), ["olympus", "jax"], "cpu")
    assert [*made.tables("label", whole=False)] == ["eager"]
    assert [*made.tables("label", whole=True)] == ["eager", "summary", "behind"]
    assert made.tables("label", whole=False)["eager"][-1] == "label"
    memory = Row(Case("memory", "x"))
    memory.rounds = {"olympus": [2.0], "jax": [3.0]}
    assert report.Report(findings_of(memory), ["olympus", "jax"], "cpu").summary()[2:] == []


def test_growth_is_told_of_three_sizes():
    rows = [row(Case("growth", f"trace, n = {n}"), olympus=[0.1 * n]) for n in (1, 10, 100)]
    made = report.Report(findings_of(*rows), ["olympus", "jax"], "cpu")
    assert made.growth(rows)[-1] == "- trace: Olympus 1.00" and made.growth(rows[:2]) == []


def test_the_label_says_where_and_beside_what():
    label = machine.label({"olympus": "0.2.0", "jax": "0.10.2"}, (1.0, 2.5), "cpu")
    assert "olympus 0.2.0, jax 0.10.2; CPU time of all threads" in label
    assert "load 1.0 at the start and 2.5 at the end" in label and machine.processor()


def test_every_marker_of_the_pages_is_of_a_table():
    known = {*GROUPS, "summary", "behind"}
    pages = "".join(p.read_text(encoding="utf-8") for p in (contestants.ROOT / "docs").glob("*.md"))
    markers = re.findall(r"<!-- benchmark (\w+) -->", pages)
    assert markers and set(markers) <= known and len(set(markers)) == len(markers)
