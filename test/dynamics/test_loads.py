"""Loads on structures, pushes from outside and loads of `tensegrity fk`."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_dynamics import (
    RobotFileError,
    Simulation,
    TensegrityError,
    forward_kinematics,
    make_estimator,
    parse_robot,
)
from tensegrity_dynamics.errors import CommandRefused
from tensegrity_dynamics.external_payloads import ExternalPayloads
from tensegrity_dynamics.external_wrenches import ExternalWrenches
from tensegrity_dynamics.robots.report import KinematicsOptions
from tensegrity_dynamics.robots.robot_types import type_of

STRING = """
name: string
kind: structure
gravity: [0, 0, -10]
nodes:
  top: {{position: [0, 0, 0], fixed: true}}
  end: {{position: [0, 0, -1.05], mass: 0.5}}
members: [{{name: s, kind: tendon, nodes: [top, end], stiffness: 100, rest_length: 1}}]
loads: [{loads}]
"""


def string(loads=""):
    return parse_robot(STRING.format(loads=loads), "here")


LOADED = "{name: hook, node: end, mass: 0.2}, {name: pull, node: end, force: [0, 0, -3]}"


def test_loads_of_a_file_stretch_a_string():
    assert forward_kinematics(string(LOADED)).nodes[1, 2] == pytest.approx(-1 - (0.7 * 10 + 3) / 100, abs=1e-12)
    options = KinematicsOptions(forces=["end=0,0,-3N"], payloads=["end=200 g"])
    figures = type_of(string()).report(string()).forward_kinematics(options).figures
    assert np.array(figures["nodes_m"]["end"])[2] == pytest.approx(-1.1, abs=1e-12)


def test_energy_stays_in_balance_while_masses_and_gravity_change():
    simulation = Simulation(string(LOADED), time_step=1e-4)
    simulation.advance(200)
    simulation.attach("bag", "end", 0.4)
    simulation.advance(300)
    simulation.set_gravity([0, 0, -4])
    simulation.advance(300)
    simulation.detach("bag")
    simulation.apply_forces({"end": [0, 0, 1]})
    simulation.advance(300)
    assert abs(simulation.energy().forces) > 0.1
    assert abs(simulation.energy_error) < 1e-7
    assert simulation.observe().tensions["s"] > 0
    simulation.reset()
    simulation.advance(100)
    assert simulation.observe().tensions["s"] == pytest.approx(10, abs=1e-6)
    with pytest.raises(TensegrityError, match="no frame"):
        simulation.attach("bag", "end", 0.4, at=[0, 0, 1])
    with pytest.raises(TensegrityError, match="hook"):
        simulation.detach("hook")


def test_bad_loads_of_structures_are_refused_by_their_field():
    with pytest.raises(RobotFileError, match=r"loads\[0\].*node.*end"):
        string("{name: a, node: ende, mass: 1}")
    with pytest.raises(RobotFileError, match=r"loads\[0\].*either a mass or a force"):
        string("{name: a, node: end}")
    with pytest.raises(RobotFileError, match=r"loads\[1\].*name.*used"):
        string("{name: a, node: end, mass: 1}, {name: a, node: end, mass: 1}")


def test_a_push_acts_until_it_is_old_and_bad_ones_are_refused_by_name():
    pushes = ExternalWrenches(("arm", "plate"), True, patience=0.5)
    assert pushes.changed(0.0) is None
    pushes.take("arm", [0, 0, -5], [0, 0, 0.1], stamp=1.0, now=1.1)
    np.testing.assert_array_equal(pushes.changed(1.2)["arm"], [0, 0, -5, 0, 0, 0.1])
    assert pushes.changed(1.4) is None
    assert pushes.changed(1.6) == {} and pushes.changed(1.7) is None
    cases = {
        "leg": ("leg", [0, 0, 1], [0, 0, 0], 2.0),
        "arm: the wrench is not finite": ("arm", [0, 0, np.nan], [0, 0, 0], 2.0),
        "arm: the wrench is of 1.000 s": ("arm", [0, 0, 1], [0, 0, 0], 1.0),
        "arm: .* still to come": ("arm", [0, 0, 1], [0, 0, 0], 9.0),
    }
    for reason, (name, force, moment, stamp) in cases.items():
        with pytest.raises(CommandRefused, match=reason):
            pushes.take(name, force, moment, stamp=stamp, now=2.0)
    with pytest.raises(CommandRefused, match="end: it is a node"):
        ExternalWrenches(("end",), False).take("end", [0, 0, 0], [0, 0, 1], stamp=0.0, now=0.0)
    assert pushes.changed(2.0) is None


PENDULUM = """
name: pendulum
kind: mechanism
gravity: [0, 0, -10]
bodies: {arm: {shapes: [{kind: point, mass: 2, frame: {at: [0.5, 0, 0]}}]}}
joints: [{name: hinge, kind: revolute, parent: world, body: arm, axis: [0, 1, 0]}]
loads: [{name: box, body: arm, at: [0.1, 0, 0], mass: 1}]
"""


def test_payloads_come_move_and_go_while_a_mechanism_swings():
    simulation = Simulation(parse_robot(PENDULUM, "here"), start=np.zeros(1), time_step=1e-3)
    payloads = ExternalPayloads(simulation)

    def put(mass, x, about_y=0.0, name="arm"):
        half = 0.5 * about_y
        payloads.take(name, mass, [x, 0, 0], np.diag([half, about_y, half]), stamp=1.0, now=1.2)

    def acceleration():  # by the smallest step that is not lost in rounding
        simulation.set_state(np.zeros(1))
        simulation.advance(1)
        return simulation.state.v[0] / 1e-3

    put(3.0, 1.0, about_y=0.4)
    assert acceleration() == pytest.approx(10 * (1 + 0.1 + 3) / (0.5 + 0.01 + 3 + 0.4), rel=1e-5)
    simulation.advance(300)
    put(3.0, 0.2)
    assert payloads.words == "arm: 3 kg at 0.2, 0, 0 m"
    simulation.advance(300)
    put(0.0, 0.0)
    simulation.advance(300)
    assert abs(simulation.energy().forces) > 1.0
    assert abs(simulation.energy_error) < 1e-6
    assert payloads.words == "none"
    own = 10 * (1 + 0.1) / (0.5 + 0.01)  # the payload of the file has stayed
    assert acceleration() == pytest.approx(own, rel=1e-5)
    put(0.0, 0.0)
    put(1.0, 1.0)
    simulation.reset()
    payloads.forget()
    assert acceleration() == pytest.approx(own, rel=1e-5)


def test_an_estimator_that_hears_of_a_payload_sags_with_the_robot():
    robot = parse_robot(
        """
name: scale
kind: mechanism
gravity: [0, 0, -10]
bodies: {pan: {shapes: [{kind: point, mass: 2}]}, arm: {mass: 1, inertia: [1, 1, 1]}}
joints:
  - {name: slide, kind: prismatic, parent: world, body: pan, axis: [0, 0, 1], resistance: {stiffness: 500}}
  - {name: turns, kind: revolute, parent: pan, body: arm, axis: [0, 0, 1]}
actuators: [{drives: turns, position: [-1, 1], rate: 1, effort: 1}]
outputs: [{name: pan, body: pan}]
""",
        "here",
    )
    estimator = make_estimator(robot)
    payloads = ExternalPayloads(estimator)
    for time, mass in enumerate((0.0, 4.0, 0.5, 0.0)):
        payloads.take("pan", mass, np.zeros(3), np.zeros((3, 3)), stamp=float(time), now=float(time))
        height = estimator.update(float(time), {"turns": 0.2}).pose[0][2]
        assert height == pytest.approx(-10 * (3 + mass) / 500, abs=1e-12)
    payloads.take("pan", 1.0, np.zeros(3), np.zeros((3, 3)), stamp=9.0, now=9.0)
    assert estimator.update(0.5, {}).pose[0][2] == pytest.approx(-0.06, abs=1e-12)  # a reset takes it off


def test_bad_payloads_are_refused_by_name_and_leave_the_one_that_is_there():
    zero = np.zeros((3, 3))
    payloads = ExternalPayloads(Simulation(parse_robot(PENDULUM, "here"), start=np.zeros(1), time_step=1e-3))
    payloads.take("arm", 0.2, np.zeros(3), zero, 2.0, 2.0)
    cases = {
        "body.*leg.*arm": ("leg", 1, zero[0], zero, 2.0),
        "arm: the payload is not finite": ("arm", np.nan, zero[0], zero, 2.0),
        "arm: the payload is not finite; ": ("arm", 0.0, [0, np.inf, 0], zero, 2.0),
        "on arm: mass -1": ("arm", -1.0, zero[0], zero, 2.0),
        "on arm: the inertia must be": ("arm", 1.0, zero[0], np.diag([-1.0, 1, 1]), 2.0),
        "on arm: no body has this inertia": ("arm", 1.0, zero[0], np.diag([1.0, 1, 3]), 2.0),
        "on arm: mass 1e[+]300 kg must be": ("arm", 1e300, zero[0], zero, 2.0),
        "on arm: point is beyond 1e[+]09": ("arm", 1.0, [1e300, 0, 0], zero, 2.0),
        "on arm: inertia is beyond 1e[+]09": ("arm", 1.0, zero[0], 1e308 * np.eye(3), 2.0),
        "arm: the payload is of 1.000 s": ("arm", 1.0, zero[0], zero, 1.0),
        "arm: .* still to come": ("arm", 0.0, zero[0], zero, 9.0),
    }
    for reason, (name, mass, at, inertia, stamp) in cases.items():
        with pytest.raises(CommandRefused, match=reason):
            payloads.take(name, mass, at, inertia, stamp=stamp, now=2.0)
    assert payloads.words == "arm: 0.2 kg"
    hung = ExternalPayloads(Simulation(string(), time_step=1e-4))
    for reason, at, inertia in (("no frame", [0, 0, 1], zero), ("no inertia", zero[0], np.eye(3))):
        with pytest.raises(CommandRefused, match=f"on end: a node .*{reason}"):
            hung.take("end", 1.0, at, inertia, 0.0, 0.0)
