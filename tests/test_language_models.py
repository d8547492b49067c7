"""Models and runs: settings and their texts, what a setting leaves out, steps taken and refused."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

import pytest

from fivestate.spec.language import (
    BOOL,
    EVERY,
    NOTHING,
    Array,
    Machine,
    Model,
    ModelError,
    OutOfRange,
    Refused,
    Relation,
    Run,
    Scalar,
    Size,
    Sort,
    State,
    Switch,
    Table,
    Term,
    action,
    count,
    escape,
    exists,
    forall,
    invariant,
    maybe,
    require,
    step,
    within,
    witness,
)
from fivestate.spec.language.properties import PropertySource
from fivestate.spec.language.settings import Setting


class Metal(Enum):
    """What a coin is made of."""

    GOLD = 0
    SILVER = 1
    COPPER = 2


class Purse(Sort, letter="p"):
    """A purse."""


class Coin(Sort, letter="c", of=Metal):
    """A coin."""


ROOM = Table("room", "how many coins of one metal a purse holds", Coin, low=0, high=5)
MELTS = Relation("melts", "the first melts into the second", Coin, Coin)
THEFT = Switch("theft", "coins are stolen")
LIMIT = Size("limit", "coins in all purses", 1, 9)


class Money(State):
    """Coins in purses."""

    coins = Array("coins of a metal in a purse", Purse, Coin, of=within(0, ROOM), initial=0)
    owner = Scalar("the purse in use", of=maybe(Purse), initial=NOTHING)
    stolen = Scalar("a coin was stolen", of=BOOL, initial=False)


@action("A-1", state="c")
def put(s: Money, p: Purse, c: Coin) -> None:
    """Put a coin into the purse in use."""
    require(in_use=s.owner == p, few=count(Purse, lambda q: s.coins[q, c] > 0) < LIMIT)
    s.coins[p, c] = s.coins[p, c] + 1


@action("A-2", state=EVERY)
def use(s: Money, p: Purse) -> None:
    """Take another purse."""
    require(other=s.owner != p)
    s.owner = p


@action("A-3", state=EVERY, given=THEFT)
def steal(s: Money, p: Purse, c: Coin) -> None:
    """Steal the last coin of its metal."""
    require(last=s.coins[p, c] == 1, unseen=s.owner != p)
    s.coins[p, c] = 0
    s.stolen = True


@action("A-4", state=Metal.SILVER)
def polish(s: Money, p: Purse) -> None:
    """Turn silver into what it melts into."""
    require(
        melts=exists(Coin, lambda c: MELTS[Metal.SILVER, c]), silver=s.coins[p, Metal.SILVER] > 1
    )
    s.coins[p, Metal.SILVER] = s.coins[p, Metal.SILVER] - 2


@invariant("I-1", given=~THEFT)
def safe(s: Money) -> Term:
    """Nothing is stolen."""
    return ~s.stolen


@invariant("I-2")
def not_both_full(s: Money, p: Purse) -> Term:
    """Some metal has room."""
    return exists(Coin, lambda c: s.coins[p, c] < ROOM[c])


@step("I-2")
def never_two_fewer(before: Money, after: Money, p: Purse, c: Coin) -> Term:
    """No step takes two coins."""
    return after.coins[p, c] + 1 >= before.coins[p, c]


@step("I-2")
def moves(before: Money, after: Money) -> Term:
    """Every step changes the purse or a coin."""
    return (before.owner != after.owner) | exists(
        Purse,
        lambda p: exists(Coin, lambda c: before.coins[p, c] != after.coins[p, c]),
    )


@witness("W-1", given=exists(Coin, lambda c: c == Metal.GOLD))
def rich(s: Money, p: Purse) -> Term:
    """A purse has gold."""
    return exists(Coin, lambda c: (c == Metal.GOLD) & (s.coins[p, c] > 0))


@escape("L-1")
def poor(s: Money) -> Term:
    """Poverty ends."""
    return forall(Purse, lambda p: forall(Coin, lambda c: s.coins[p, c] == 0))


PROPERTIES: tuple[PropertySource, ...] = (safe, not_both_full, never_two_fewer, moves, rich, poor)
MONEY = Machine("money", Money, (put, use, steal, polish), PROPERTIES, routes=Coin)
ROOMS: dict[Enum, int] = {Metal.GOLD: 1, Metal.SILVER: 3}
MELTING: dict[tuple[Enum, Enum], bool] = {(Metal.SILVER, Metal.GOLD): True}
SETTINGS: Mapping[str, Setting] = {
    "purse": 2,
    "coin": (Metal.GOLD, Metal.SILVER),
    "room": ROOMS,
    "melts": MELTING,
    "theft": True,
    "limit": 2,
}
MODEL = Model("money", "Two purses.", MONEY, SETTINGS)


def having(**changed: Any) -> Model:
    return Model("money", "Changed.", MONEY, {**SETTINGS, **changed})


def names(model: Model) -> tuple[list[str], list[str]]:
    return [a.name for a in model.actions], [claim.name for claim in model.claims]


def test_a_switch_takes_its_actions_and_properties_along() -> None:
    actions, claims = names(MODEL)
    assert actions == ["put", "use", "steal", "polish"]
    assert claims == ["not_both_full", "never_two_fewer", "moves", "rich", "poor"]
    actions, claims = names(MODEL.set("theft=false"))
    assert actions == ["put", "use", "polish"]
    assert claims == ["safe", "not_both_full", "never_two_fewer", "moves", "rich", "poor"]


def test_a_model_has_the_members_it_chooses_and_what_is_declared_for_them() -> None:
    model = MODEL.set("coin=copper", "room.COPPER=2")
    assert model.settings["coin"] == (Metal.COPPER,)
    assert [cell.name for cell in model.cells[:2]] == ["coins[p0, COPPER]", "coins[p1, COPPER]"]
    actions, claims = names(model)
    assert "polish" not in actions
    assert "rich" not in claims
    assert [s.label for s in model.steps if s.action.name == "put"] == [
        "put(p0, COPPER)",
        "put(p1, COPPER)",
    ]


def test_members_come_in_the_order_of_their_enum() -> None:
    model = having(coin=(Metal.SILVER, Metal.GOLD))
    assert model.elements(Coin) == (0, 1)


def test_a_table_is_read_at_the_indices_of_the_cell_it_bounds() -> None:
    bounds = {cell.name: (cell.low, cell.high) for cell in MODEL.cells}
    assert bounds["coins[p1, GOLD]"] == (0, 1)
    assert bounds["coins[p1, SILVER]"] == (0, 3)
    assert bounds["owner"] == (0, 2)


def test_a_relation_lists_what_is_true() -> None:
    assert [s.possible for s in MODEL.steps if s.action.name == "polish"] == [True, True]
    apart = having(melts={})
    assert [s.possible for s in apart.steps if s.action.name == "polish"] == [False, False]


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("purse=3", "purse", 3),
        (" purse = 3 ", "purse", 3),
        ("theft=false", "theft", False),
        ("theft=TRUE", "theft", True),
        ("limit=9", "limit", 9),
        ("coin=GOLD", "coin", (Metal.GOLD,)),
        ("coin=silver, gold", "coin", (Metal.SILVER, Metal.GOLD)),
        ("room=2", "room", {Metal.GOLD: 2, Metal.SILVER: 2}),
        ("room.GOLD=0", "room", {Metal.GOLD: 0, Metal.SILVER: 3}),
        ("room.copper=4", "room", {Metal.GOLD: 1, Metal.SILVER: 3, Metal.COPPER: 4}),
    ],
)
def test_a_setting_is_read_from_text(text: str, name: str, value: Setting) -> None:
    changed = MODEL.set(text)
    assert changed.settings == {**SETTINGS, name: value}
    assert changed.changes == (text,)
    assert MODEL.settings == SETTINGS


WRONG = {
    "purse": "'purse' is no setting: write name=value",
    "purse=": "'purse=' is no setting: write name=value",
    "=3": "no setting ''; known: coin, limit, melts, purse, room, theft",
    "purses=3": "no setting 'purses'; did you mean 'purse'",
    "purse.GOLD=3": "'purse.GOLD' is no setting: write purse=value",
    "theft.GOLD=true": "'theft.GOLD' is no setting: write theft=value",
    "coin.GOLD=GOLD": "'coin.GOLD' is no setting: write coin=value",
    "room.GOLD.SILVER=1": "'room.GOLD.SILVER' is no setting: write room=value",
    "purse=0": r"model money: purse = 0 is out of range 1\.\.8",
    "purse=9": r"model money: purse = 9 is out of range 1\.\.8",
    f"purse={'9' * 5000}": "a whole number is wanted",
    "purse=-1": "'purse=-1': a whole number is wanted",
    "purse=two": "'purse=two': a whole number is wanted",
    "purse=٣": "a whole number is wanted",
    "purse=true": "'purse=true': a whole number is wanted",
    "theft=1": "'theft=1': true or false is wanted",
    "theft=yes": "'theft=yes': true or false is wanted",
    "limit=0": r"model money: limit = 0 is out of range 1\.\.9",
    "limit=10": r"model money: limit = 10 is out of range 1\.\.9",
    "coin=BRASS": "'BRASS' is no Metal; known: COPPER, GOLD, SILVER",
    "coin=SILVR": "did you mean 'SILVER'",
    "coin=GOLD,": "'' is no Metal",
    "coin=GOLD,GOLD": "model money: coin names a member twice",
    "coin=COPPER": "model money: room has no value for COPPER",
    "room.GOLD=6": r"model money: room.GOLD = 6 is out of range 0\.\.5",
    "room=many": "'room=many': a whole number is wanted",
    "room.LEAD=1": "'LEAD' is no Metal",
    "melts=true": "melts",
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:20])
def test_a_wrong_text_is_refused_and_says_why(text: str) -> None:
    with pytest.raises(ModelError, match=WRONG[text]) as raised:
        MODEL.set(text)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"purse": 0}, r"purse = 0 is out of range 1\.\.8"),
        ({"purse": (Metal.GOLD,)}, "purse = .* is out of range"),
        ({"coin": ()}, "coin must name one or more of GOLD, SILVER, COPPER"),
        ({"coin": 2}, "coin must name one or more of"),
        ({"limit": {Metal.GOLD: 1}}, "limit = .* is out of range"),
        ({"room": {Metal.GOLD: 1}}, "room has no value for SILVER"),
        (
            {"melts": {(Metal.GOLD, Metal.SILVER): 2}},
            r"melts.GOLD.SILVER = 2 is out of range 0\.\.",
        ),
        ({"pursed": 2}, "no setting 'pursed'; did you mean 'purse'"),
    ],
)
def test_a_wrong_setting_is_refused_where_the_model_is_made(
    changed: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(ModelError, match=f"model money:? .*{message}|{message}"):
        having(**changed)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_needed(name: str) -> None:
    settings = {key: value for key, value in SETTINGS.items() if key != name}
    with pytest.raises(ModelError, match=f"model money does not set '{name}'"):
        Model("money", "One is missing.", MONEY, settings)


def test_a_step_is_taken_by_its_name_and_printed_arguments() -> None:
    run = Run(MODEL)
    run.take("use", "p1")
    run.take("put", "p1", "SILVER")
    assert run.show() == {
        "coins[p0, GOLD]": "0",
        "coins[p0, SILVER]": "0",
        "coins[p1, GOLD]": "0",
        "coins[p1, SILVER]": "1",
        "owner": "p1",
        "stolen": "False",
    }
    assert run.enabled() == ["put(p1, GOLD)", "put(p1, SILVER)", "use(p0)"]


def test_a_refusal_names_clause_first_false_guard_and_values_and_changes_nothing() -> None:
    run = Run(MODEL)
    run.take("use", "p0")
    run.take("put", "p0", "GOLD")
    before = run.state
    with pytest.raises(Refused) as raised:
        run.take("steal", "p1", "GOLD")
    refused = raised.value
    assert (refused.clause, refused.action, refused.guard) == ("A-3", "steal(p1, GOLD)", "last")
    assert refused.values == {"coins[p1, GOLD]": "0"}
    assert str(refused) == (
        "A-3 steal(p1, GOLD) is refused: guard 'last' is false (coins[p1, GOLD]=0)"
    )
    with pytest.raises(Refused) as raised:
        run.take("steal", "p0", "GOLD")
    assert (raised.value.guard, raised.value.values) == ("unseen", {"owner": "p0"})
    assert run.state == before


def test_a_value_that_leaves_its_range_is_told_and_changes_nothing() -> None:
    run = Run(MODEL)
    run.take("use", "p0")
    run.take("put", "p0", "GOLD")
    before = run.state
    message = r"put\(p0, GOLD\): coins\[p0, GOLD\] = 2 leaves 0\.\.1"
    with pytest.raises(OutOfRange, match=message):
        run.take("put", "p0", "GOLD")
    assert run.state == before
    assert run.holds("moves")  # the last step is still the one that was taken


def test_what_holds_is_judged_here_and_on_the_last_step() -> None:
    run = Run(MODEL)
    judged = {name: run.holds(name) for name in names(MODEL)[1] if name != "poor"}
    before_any_step = {"not_both_full": True, "never_two_fewer": True, "moves": True, "rich": False}
    assert judged == before_any_step
    run.take("use", "p0")
    run.take("put", "p0", "GOLD")
    assert run.holds("rich")
    for _ in range(3):
        run.take("put", "p0", "SILVER")
    assert not run.holds("not_both_full")
    assert run.holds("never_two_fewer")
    run.take("polish", "p0")
    assert not run.holds("never_two_fewer")
    assert run.holds("not_both_full")
    run.take("use", "p1")
    assert run.holds("never_two_fewer")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda run: run.take("puts", "p0", "GOLD"),
            r"has no puts\(p0, GOLD\); did you mean 'put'\? known: polish, put, steal",
        ),
        (lambda run: run.take("put", "p0"), r"has no put\(p0\)"),
        (lambda run: run.take("put", "p9", "GOLD"), r"did you mean 'put\(p[01], GOLD\)'"),
        (lambda run: run.holds("sound"), "cannot judge 'sound' on one run; .*known: moves, never"),
        (lambda run: run.holds("poor"), "cannot judge 'poor' on one run"),
        (lambda run: run.value("coin[p0, GOLD]"), r"did you mean 'coins\[p0, GOLD\]'"),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest(wrong: Any, message: str) -> None:
    run = Run(MODEL)
    with pytest.raises(ModelError, match=message):
        wrong(run)
    assert run.state == MODEL.initial


def test_a_start_is_a_run() -> None:
    start = (("use", "p1"), ("put", "p1", "SILVER"))
    model = Model("money", "Later.", MONEY, SETTINGS, start=start)
    run = Run(Model("money", "From the first.", MONEY, SETTINGS))
    assert model.first == run.state
    for name, *arguments in start:
        run.take(name, *arguments)
    assert model.initial == run.state
    with pytest.raises(Refused, match="guard 'in_use'"):
        _ = Model("money", "Never.", MONEY, SETTINGS, start=(start[1],)).initial
