"""Routing policies share out buckets as their descriptions say, and refuse wrong options."""

from __future__ import annotations

from collections import Counter

import pytest

from controller.core.buckets import BUCKETS
from controller.core.routing import Routing
from controller.policies import _template, registry
from controller.policies.base import Candidate, Group, Spread, SpreadError, check_spread
from controller.policies.registry import build_policy
from tests.fakes.fabrics import leaf_spine, link_between
from topologies.errors import SpecError, UnknownNameError
from topologies.model import Fabric, Node, Role
from topologies.reading import Reader


def spread_of(fabric: Fabric, raw: object, switch: str, leaf: str, down: set[int]) -> Spread:
    """What a policy answers for a switch and a leaf while links are down."""
    routing = Routing(fabric, build_policy(raw, fabric), seed=7)
    return routing.spread(fabric.by_name[switch], fabric.by_name[leaf], frozenset(down))


def neighbours(fabric: Fabric, switch: str, spread: Spread) -> Counter[str]:
    """How many buckets go to each neighbour."""
    ports = fabric.ports_of[switch]
    return Counter(fabric.port(ports[port - 1].peer).node for port in spread.buckets)


def test_ecmp_gives_equal_shares_whatever_the_rates() -> None:
    """Unequal links do not count."""
    links = [{"between": ["leaf1", "spine1"], "rate": "10 Gbit/s"}]
    fabric = leaf_spine(2, 4, links=links)
    spread = spread_of(fabric, {"policy": "ecmp"}, "leaf1", "leaf2", set())
    assert set(neighbours(fabric, "leaf1", spread).values()) == {16}


def test_wcmp_gives_shares_by_capacity() -> None:
    """A link of a quarter of the rate gets a quarter of the buckets of another."""
    links = [{"between": ["leaf1", "spine1"], "rate": "25 Gbit/s"}]
    fabric = leaf_spine(2, 2, links=links)
    spread = spread_of(fabric, {"policy": "wcmp"}, "leaf1", "leaf2", set())
    assert neighbours(fabric, "leaf1", spread) == {"spine1": 13, "spine2": 51}


def test_wcmp_follows_lost_lanes_and_ecmp_does_not() -> None:
    """A spine that lost one of two lanes to the leaf gets half the weight under wcmp only."""
    fabric = leaf_spine(3, 2, parallel=2)
    down = {link_between(fabric, "spine1", "leaf3").id}
    wcmp = spread_of(fabric, {"policy": "wcmp"}, "leaf1", "leaf3", down)
    ecmp = spread_of(fabric, {"policy": "ecmp"}, "leaf1", "leaf3", down)
    shares = neighbours(fabric, "leaf1", wcmp)
    assert (shares["spine1"], shares["spine2"]) in {(21, 43), (22, 42)}
    assert neighbours(fabric, "leaf1", ecmp) == {"spine1": 32, "spine2": 32}


@pytest.mark.parametrize("name", ["ecmp", "wcmp"])
def test_buckets_of_a_lost_spine_move_to_the_others(name: str) -> None:
    """A spine that cannot reach the leaf gets none, and no other bucket moves."""
    fabric = leaf_spine(3, 4)
    normal = spread_of(fabric, {"policy": name}, "leaf1", "leaf3", set())
    down = {link_between(fabric, "spine2", "leaf3").id}
    now = spread_of(fabric, {"policy": name}, "leaf1", "leaf3", down)
    lost = neighbours(fabric, "leaf1", normal)["spine2"]
    moved = sum(old != new for old, new in zip(normal.buckets, now.buckets, strict=True))
    assert neighbours(fabric, "leaf1", now)["spine2"] == 0
    assert moved == lost == 16


def test_order_of_buckets_differs_by_switch_destination_and_seed() -> None:
    """The same bucket takes different spines elsewhere, so that paths do not pile up."""
    fabric = leaf_spine(3, 4)
    policy = build_policy({}, fabric)
    leaf = fabric.by_name
    maps = [
        Routing(fabric, policy, seed).spread(leaf[switch], leaf[goal]).buckets
        for switch, goal, seed in (
            ("leaf1", "leaf3", 7), ("leaf2", "leaf3", 7), ("leaf1", "leaf2", 7),
            ("leaf1", "leaf3", 8),
        )
    ]  # fmt: skip
    shifted = [tuple(port - min(ports) for port in ports) for ports in maps]
    assert len(set(shifted)) == 4


class TestStatic:
    """The policy ``static``."""

    def test_hosts_choose_by_remainder(self) -> None:
        """Host n of a leaf is reached over spine (n - 1) mod spines."""
        fabric = leaf_spine(2, 3, hosts_per_leaf=6)
        routing = Routing(fabric, build_policy({"policy": "static"}, fabric), 7)
        spines = [routing.path_of("h1", f"h{n}", 0xC000)[2].node for n in range(7, 13)]
        assert spines == ["spine1", "spine2", "spine3"] * 2

    def test_lanes_are_used_evenly_up_and_down(self) -> None:
        """Hosts are spread over spines first, then over lanes, at both tiers."""
        fabric = leaf_spine(2, 2, hosts_per_leaf=8, parallel=2)
        routing = Routing(fabric, build_policy({"policy": "static"}, fabric), 7)
        paths = [routing.path_of("h1", f"h{n}", 0) for n in range(9, 17)]
        assert set(Counter(path[1].name for path in paths).values()) == {2}
        assert set(Counter(path[2].name for path in paths).values()) == {2}

    def test_source_port_plays_no_part(self) -> None:
        """All flows to a host take one path."""
        fabric = leaf_spine(2, 4, hosts_per_leaf=4)
        routing = Routing(fabric, build_policy({"policy": "static"}, fabric), 7)
        assert len({routing.path_of("h1", "h6", port) for port in range(200)}) == 1

    def test_by_leaf(self) -> None:
        """All hosts of a leaf are reached the same way."""
        fabric = leaf_spine(3, 2, hosts_per_leaf=4)
        raw = {"policy": "static", "by": "leaf"}
        spread = spread_of(fabric, raw, "leaf1", "leaf2", set())
        assert spread.hosts == ()
        assert neighbours(fabric, "leaf1", spread) == {"spine2": 1}

    def test_paths_override_for_leaf_host_and_interface(self) -> None:
        """A host's entry wins over its leaf's; an interface names one lane."""
        fabric = leaf_spine(2, 2, hosts_per_leaf=2, parallel=2)
        lane = link_between(fabric, "leaf1", "spine2", lane=2)
        interface = next(p.name for p in fabric.ports_of["leaf1"] if p.link == lane.id)
        paths = {"leaf1": {"leaf2": "spine2", "h4": interface}}
        routing = Routing(fabric, build_policy({"policy": "static", "paths": paths}, fabric), 7)
        assert routing.path_of("h1", "h3", 0)[2].node == "spine2"
        assert routing.path_of("h1", "h4", 0)[1].name == interface
        assert routing.path_of("h3", "h1", 0)[2].node == "spine1"

    def test_next_way_takes_over(self) -> None:
        """When the fixed way is down its hosts are spread over the ways that work."""
        fabric = leaf_spine(2, 3, hosts_per_leaf=9)
        down = {link_between(fabric, "spine1", "leaf2").id}
        routing = Routing(fabric, build_policy({"policy": "static"}, fabric), 7)
        spines = Counter(
            routing.path_of("h1", f"h{n}", 0, down=frozenset(down))[2].node for n in range(10, 19)
        )
        assert set(spines) == {"spine2", "spine3"}
        assert max(spines.values()) <= 5

    @pytest.mark.parametrize(
        ("options", "error"),
        [
            ({"by": "flow"}, r"routing.by: 'flow' is not a known way to choose"),
            ({"paths": {"leaf7": {}}}, r"routing.paths.leaf7: 'leaf7' is not a known switch"),
            ({"paths": {"leaf1": {"h9": "spine1"}}}, r"paths.leaf1.h9: 'h9' is not a known remote"),
            ({"paths": {"leaf1": {"h1": "spine1"}}}, r"paths.leaf1.h1: 'h1' is not a known remote"),
            ({"paths": {"leaf1": {"leaf2": "leaf2"}}}, r"leaf1.leaf2: 'leaf2' is not a known way"),
            ({"paths": {"leaf1": {"leaf2": 3}}}, r"leaf1.leaf2: 3 is not a known way there"),
            ({"paths": {"leaf1": "spine1"}}, r"paths.leaf1: 'spine1' must be a mapping"),
            ({"path": {}}, r"routing.path: 'path' is not a known key; did you mean 'paths'"),
        ],
    )
    def test_wrong_options(self, options: dict[str, object], error: str) -> None:
        """Each wrong option is refused with its place and the known names."""
        with pytest.raises(SpecError, match=error):
            build_policy({"policy": "static", **options}, leaf_spine(2, 2))


def test_default_policy_is_ecmp() -> None:
    """An empty section means equal cost."""
    assert build_policy({}, leaf_spine(2, 2)).name == "ecmp"


def test_unknown_policy_lists_the_known_ones() -> None:
    """The error names the policies that there are, and the nearest one."""
    with pytest.raises(
        UnknownNameError, match=r"routing.policy: 'emcp'.*mean 'ecmp'.*static, wcmp"
    ):
        build_policy({"policy": "emcp"}, leaf_spine(2, 2))


@pytest.mark.parametrize("name", ["ecmp", "wcmp"])
def test_options_that_a_policy_does_not_have_are_refused(name: str) -> None:
    """Nothing that the user writes is ignored."""
    with pytest.raises(UnknownNameError, match=r"routing.weights"):
        build_policy({"policy": name, "weights": [1, 2]}, leaf_spine(2, 2))


def test_every_registered_policy_carries_its_name() -> None:
    """The name that selects a policy is the one that it reports."""
    fabric = leaf_spine(2, 2)
    names = [build_policy({"policy": name}, fabric).name for name in registry.names()]
    assert names == sorted(names) == list(registry.names())


def test_name_is_registered_once() -> None:
    """A second policy of the same name is a fault of the program."""
    with pytest.raises(ValueError, match="'ecmp' is registered twice"):
        registry.register("ecmp", _template.build)


def test_template_is_a_working_policy() -> None:
    """What the template builds has the weights that its options say."""
    fabric = leaf_spine(2, 2)
    with Reader({"favourite": "spine2", "times": 3}, "routing") as options:
        policy = _template.build(options, fabric)
    spread = Routing(fabric, policy, 7).spread(fabric.by_name["leaf1"], fabric.by_name["leaf2"])
    assert neighbours(fabric, "leaf1", spread) == {"spine1": 16, "spine2": 48}


LEAF1, LEAF2 = (Node(f"leaf{number}", Role.LEAF, 1, number) for number in (1, 2))


def group(onward_bps: int = 5) -> Group:
    """A group of two candidates, the second of which always works."""
    ways = (Candidate(1, "leaf1-eth1", "spine1", 5, onward_bps), Candidate(2, "x", "spine2", 5, 5))
    return Group(LEAF1, LEAF2, 7, ways, ways, (("h2", 1),))


@pytest.mark.parametrize(
    ("spread", "reason"),
    [
        (Spread((1,) * 63), "63 buckets instead of 64"),
        (Spread((3,) * BUCKETS), "port 3 leads nowhere"),
        (Spread((1,) * BUCKETS), "port 1 leads nowhere"),
        (Spread((2,), ((1, 1),)), "port 1 leads nowhere"),
        (Spread(), "no buckets although there is a way"),
        (Spread((2,), ((9, 2),)), "no host has the number 9"),
    ],
)
def test_wrong_answers_of_policies_are_refused(spread: Spread, reason: str) -> None:
    """A policy's fault is found when it answers, with policy, switch and leaf."""
    with pytest.raises(SpreadError, match=rf"policy p, leaf1 to leaf2: {reason}"):
        check_spread("p", group(onward_bps=0), spread)


def test_right_answers_of_policies_pass() -> None:
    """All buckets, one for all, or none when nothing works."""
    check_spread("p", group(), Spread((1, 2) * 32))
    check_spread("p", group(), Spread((2,), ((1, 1),)))
    check_spread("p", Group(LEAF1, LEAF2, 7, (), ()), Spread())


def test_spread_answers_for_a_packet() -> None:
    """A host's own port wins; one bucket stands for all; nothing is None."""
    assert Spread((1, 2) * 32, ((4, 9),)).port(3, 4) == 9
    assert Spread((1, 2) * 32, ((4, 9),)).port(3, 5) == 2
    assert Spread((6,)).port(63, 1) == 6
    assert Spread().port(0, 1) is None
