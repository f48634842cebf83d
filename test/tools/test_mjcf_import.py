"""Robot files from models of MuJoCo: the same accelerations, lengths and places, and what is listed or refused."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_dynamics import Simulation, TensegrityError, load_robot, parse_robot
from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import evaluate
from tensegrity_dynamics.mechanisms.dynamics.forward_dynamics import forward_dynamics
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.mjcf import mechanism_mjcf
from tensegrity_dynamics.mechanisms.route_readings import read_routes
from tensegrity_dynamics.mechanisms.workspace import make_workspace
from tensegrity_tools.mjcf_import import robot_from_mjcf

mujoco = pytest.importorskip("mujoco")

ARM = """
<mujoco model="arm">
 <compiler angle="degree"/>
 <option gravity="0 0.3 -9.81"><flag constraint="disable"/></option>
 <worldbody>
  <geom type="plane" size="5 5 .1" pos="0 0 0.2"/>
  <site name="w" pos="0.1 0.02 1.3"/>
  <body name="base" pos="0 0 1" euler="0 10 20">
   <joint name="h1" type="hinge" axis="0 1 0" pos="0.01 0 0.02" damping="0.1" stiffness="2" springref="15" ref="5"
          armature="0.01"/>
   <joint name="s1" type="slide" axis="1 0 0.2" ref="0.03" damping="3"/>
   <geom type="box" size=".05 .04 .03" pos="0.02 0 0"/>
   <body name="fore arm" pos="0.2 0 0.1" euler="30 0 0">
    <joint name="h2" type="hinge" axis="0 0 1" pos="0 0.03 0" range="-60 70" limited="true"/>
    <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.02"/>
    <site name="tip" pos="0.2 0 0"/>
    <body name="end" pos="0.2 0 0.05"><geom type="sphere" size=".03"/></body>
   </body>
  </body>
 </worldbody>
 <tendon><spatial name="t" stiffness="300" damping="4" springlength="0 0.36"><site site="w"/>
  <site site="tip"/></spatial>
 </tendon>
 <actuator><motor name="m" joint="h1" gear="3" ctrlrange="-2 2" ctrllimited="true"/></actuator>
</mujoco>
"""

STOPS = """
name: arms
kind: mechanism
gravity: [0, 0, -9.81]
bodies:
  upper: {mass: 1.3, inertia: [0.02, 0.03, 0.01], centre: [0.3, 0, 0.02]}
  lower: {mass: 0.4, inertia: [0.002, 0.002, 0.002], centre: [0.1, 0.01, 0]}
joints:
  - {name: knee, kind: revolute, parent: world, body: upper, axis: [0, 1, 0], start: 0.2,
     resistance: {limits: [-2, 0.5], stop_stiffness: 800, stop_damping: 3}}
  - {name: slide, kind: prismatic, parent: upper, body: lower, axis: [1, 0, 0], start: 0.1, frame: {at: [0.5, 0, 0]},
     resistance: {limits: [-0.1, 0.12], stop_stiffness: 3000, stop_damping: 12}}
"""


def imported(tmp_path, text):
    path = tmp_path / "model.xml"
    path.write_text(text)
    made = robot_from_mjcf(path, "model")
    return parse_robot(made.text, "model"), made.differences, mujoco.MjModel.from_xml_string(text)


def test_an_imported_arm_accelerates_as_in_mujoco(tmp_path):
    robot, _, model = imported(tmp_path, ARM)
    mechanism, data = robot.mechanism, mujoco.MjData(model)
    random, taut = np.random.default_rng(0), 0
    while taut < 2:
        data.qpos[:], data.qvel[:] = model.qpos0 + 0.1 * random.normal(size=3), 0.1 * random.normal(size=3)
        mujoco.mj_forward(model, data)
        q, v = np.array(robot.model.initial_configuration), np.zeros(mechanism.velocity_count)
        for k, name in enumerate(("h1", "s1", "h2")):
            q[mechanism.positions_of(name)], v[mechanism.velocities_of(name)] = data.qpos[k], data.qvel[k]
        if 300.0 * (data.ten_length[0] - 0.36) + 4.0 * data.ten_velocity[0] > 0.0 and data.ten_length[0] > 0.36:
            taut += 1
            acceleration = forward_dynamics(mechanism, q, v).acceleration
            np.testing.assert_allclose(acceleration, data.qacc, rtol=1e-9, atol=1e-9)


def test_names_limits_ground_and_motors_are_taken_over(tmp_path):
    robot, differences, model = imported(tmp_path, ARM)
    mechanism = robot.mechanism
    assert mechanism.joint("h2").resistance[0].limits == pytest.approx(np.deg2rad([-60, 70]))
    assert robot.actuators[0].effort == 6.0
    assert mechanism.flat.mass.sum() == pytest.approx(model.body_mass.sum(), rel=1e-12)
    assert mechanism.ground.height == pytest.approx(0.2)
    assert [(part.kind, part.body) for part in mechanism.contact_parts] == [
        ("box", "base"), ("capsule", "fore_arm"), ("sphere", "end")
    ]  # fmt: skip
    said = " ".join(differences)
    assert "limits are springs" in said and "the ground is a spring" in said and "gains of position" in said


FREE = """
<mujoco>
 <worldbody>
  <body name="box" pos="0.1 0.2 0.6" quat="0.8 0.6 0 0">
   <freejoint/><geom type="box" size=".1 .1 .1"/>
   <body name="ball" pos="0.2 0 0"><joint name="b" type="ball" pos="-0.1 0 0"/>
     <geom type="ellipsoid" size=".05 .03 .04"/>
    <site name="here" pos="0 0 0.1"/></body>
  </body>
  <body name="crank" pos="1 0 0"><joint axis="0 1 0"/><geom type="cylinder" size=".02 .1" pos="0 0 .1"/></body>
  <body name="rod" pos="1 0 .2"><freejoint/><geom type="cylinder" size=".02 .1" pos="0 0 .1"/></body>
 </worldbody>
 <equality><connect body1="crank" body2="rod" anchor="0 0 0.2"/></equality>
</mujoco>
"""


def test_stops_are_springs_and_dampers_in_mujoco_and_come_back_as_they_were(tmp_path):
    robot = parse_robot(STOPS, "here")
    text = mechanism_mjcf(robot).text
    model = mujoco.MjModel.from_xml_string(text)
    data, simulation = mujoco.MjData(model), Simulation(robot, 1e-4)
    assert simulation.state.q[0] > 0.505 and simulation.state.q[1] > 0.1205  # both press their stops
    model.opt.timestep, model.opt.iterations, model.opt.tolerance = 1e-4, 100, 0.0
    mujoco.mj_step(model, data, 1000)
    assert data.qpos == pytest.approx(simulation.state.q, abs=1e-7)
    simulation.set_state(simulation.state.q - [0.1, 0.02])
    data.qpos[:], data.qvel[:] = simulation.state.q, 0.0
    for _ in range(10):  # they fall on the stops, and bounce
        mujoco.mj_step(model, data, 300)
        assert data.qpos == pytest.approx(simulation.advance(300).q, abs=2e-4)
    back, _, _ = imported(tmp_path, text)
    for name, stiffness, damping in (("knee", 800.0, 3.0), ("slide", 3000.0, 12.0)):
        (law,) = back.mechanism.joint(name).resistance
        assert [law.stop_stiffness, law.stop_damping] == pytest.approx([stiffness, damping], rel=1e-6)


def test_free_bodies_balls_and_loops_stand_where_mujoco_has_them(tmp_path):
    robot, differences, model = imported(tmp_path, FREE)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    pose = (
        BodyPoses(robot.model_as(MechanismModel)).update(robot.model.initial_configuration).output(robot.outputs[0])[0]
    )
    np.testing.assert_allclose(pose[0], data.site_xpos[0], atol=1e-12)
    assert [loop.kind for loop in robot.mechanism.loops] == ["point"]
    assert any("ellipsoid" in each for each in differences)


@pytest.mark.parametrize("side", [0.2, -0.2])
def test_a_tendon_round_a_cylinder_has_mujocos_length(tmp_path, side):
    text = f"""
<mujoco>
 <worldbody>
  <geom name="drum" type="cylinder" size=".05 .1" euler="90 0 0" contype="0" conaffinity="0"/>
  <site name="a" pos="-0.3 0 {0.1 * side}"/><site name="s" pos="0 0 {side}"/>
  <body name="load" pos="0.3 0 {-0.5 * side}"><joint name="x" type="slide" axis="0 0 1"/>
   <geom type="sphere" size=".01"/><site name="b"/></body>
 </worldbody>
 <tendon><spatial name="t" stiffness="100"><site site="a"/><geom geom="drum" sidesite="s"/><site site="b"/></spatial>
 </tendon>
</mujoco>"""
    robot, _, model = imported(tmp_path, text)
    data, mechanism = mujoco.MjData(model), robot.mechanism
    work = make_workspace(mechanism.flat)
    for x in (0.0, 0.1, -0.1, 0.25 * np.sign(side)):
        data.qpos[0] = x
        mujoco.mj_forward(model, data)
        evaluate(mechanism.flat, np.array([x]), np.zeros(1), work)
        assert read_routes(mechanism, work)["t"].length == pytest.approx(data.ten_length[0], rel=1e-9)


def test_a_motor_of_a_tendon_becomes_a_slider_with_its_force(tmp_path):
    text = """
<mujoco>
 <option gravity="0 0 0"/>
 <worldbody>
  <site name="a" pos="0.3 0.1 0.4"/>
  <body name="load"><joint name="x" type="slide" axis="1 0 0" stiffness="50"/><geom type="sphere" size=".05"/>
   <site name="b" pos="0 0.1 0.4"/></body>
 </worldbody>
 <tendon><spatial name="t"><site site="a"/><site site="b"/></spatial></tendon>
 <actuator><general name="pull" tendon="t" gainprm="4" ctrlrange="0 2" ctrllimited="true"/></actuator>
</mujoco>"""
    robot, differences, _ = imported(tmp_path, text)
    assert robot.actuators[0].name == "pull" and robot.actuators[0].effort == 8.0
    mechanism = robot.mechanism
    q, work = np.array(robot.model.initial_configuration), make_workspace(mechanism.flat)
    pull = robot.actuators[0].drives
    q[mechanism.positions_of(pull)] = 5e-5
    evaluate(mechanism.flat, q, np.zeros(2), work)
    tension = read_routes(mechanism, work)["t"].tension
    assert tension == pytest.approx(1e5 * 5e-5, rel=1e-8)
    assert work.passive[mechanism.velocities_of(pull)][0] == pytest.approx(-tension, rel=1e-12)
    assert work.passive[mechanism.velocities_of("x")][0] == pytest.approx(tension, rel=1e-12)
    assert any("no stiffness" in each for each in differences)


def test_files_that_mujoco_cannot_read_are_refused(tmp_path):
    path = tmp_path / "bad.xml"
    with pytest.raises(TensegrityError, match="there is no file"):
        robot_from_mjcf(path, "bad")
    path.write_text("<mujoco><worldbody><boddy/></worldbody></mujoco>")
    with pytest.raises(TensegrityError, match=r"MuJoCo \S+ cannot read .*unrecognized .*boddy., line 1"):
        robot_from_mjcf(path, "bad")
    path.write_text("<mujoco/>")
    with pytest.raises(TensegrityError, match="no body beside the world"):
        robot_from_mjcf(path, "bad")


PARTS = """
<mujoco model="parts">
 <asset><mesh name="wedge" vertex="0 0 0  .1 0 0  0 .1 0  0 0 .2" scale="1 1 0.5"/></asset>
 <worldbody>
  <site name="a" pos="-.2 0 .3"/>
  <geom name="drum" type="cylinder" size=".05 .02" pos="0 0 .3" euler="90 0 0"/>
  <body name="arm" pos="0 0 .1">
   <joint name="turn" axis="0 1 0"/>
   <geom type="mesh" mesh="wedge" pos="0.3 0 0" euler="0 0 30" mass="1"/>
   <geom type="mesh" mesh="wedge" group="3" mass="0"/>
   <site name="b" pos=".2 0.1 .2"/>
  </body>
 </worldbody>
 <tendon>
  <spatial name="aslant" stiffness="10"><site site="a"/><geom geom="drum"/><site site="b"/></spatial>
  <spatial name="long" stiffness="10" springlength="0.1"><site site="a"/><site site="b"/></spatial>
 </tendon>
 <actuator><motor name="one" joint="turn"/>
  <position name="two" joint="turn"/></actuator>
</mujoco>
"""


def test_meshes_look_as_in_mujoco_and_what_is_left_out_is_named_with_its_line(tmp_path):
    path = tmp_path / "parts.xml"
    path.write_text(PARTS)
    robot_from_mjcf(path, "parts").write(tmp_path / "parts.yaml")
    said = robot_from_mjcf(path, "parts").differences
    assert "tendon aslant (line 15) is left out: it passes cylinder drum aslant, by 100 mm" in " ".join(said)
    assert any(each.startswith("tendon long (line 16) is left out: it is a spring that starts at") for each in said)
    assert "actuator two (line 19) is left out: another one drives its joint already." in said
    robot = load_robot(tmp_path / "parts.yaml")
    (arm,) = (body for body in robot.mechanism.bodies if body.name == "arm")
    (mesh,) = arm.meshes
    corners = mesh.mesh.vertices @ mesh.placement.axes.T + mesh.placement.origin
    turned = np.array([[np.sqrt(0.75), -0.5, 0.0], [0.5, np.sqrt(0.75), 0.0], [0.0, 0.0, 1.0]])
    expected = np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]]) @ turned.T + [0.3, 0, 0]
    distances = np.linalg.norm(corners[:, None] - expected, axis=2)
    assert distances.min(axis=0).max() < 1e-7
    assert len(mesh.mesh.triangles) == 4


def test_light_branches_of_a_tendon_and_motors_without_input_are_left_out_and_said(tmp_path):
    path = tmp_path / "drum.xml"
    path.write_text(
        """<mujoco><worldbody><site name="top" pos="0 0 1"/><site name="still" pos=".3 0 0"/>
        <body name="load"><joint name="rail" type="slide" axis="0 0 1"/><geom size=".1" mass="1"/>
        <site name="hook"/></body></worldbody><tendon><spatial name="rope" stiffness="500" springlength="0 0.98">
        <site site="top"/><site site="hook"/><pulley divisor="20"/><site site="still"/><site site="hook"/></spatial>
        </tendon><actuator><general name="bias" joint="rail" gainprm="0" biastype="affine" biasprm="2 0 0"/></actuator>
        </mujoco>"""
    )
    made = robot_from_mjcf(path, "drum")
    said = " ".join(made.differences)
    assert "tendon rope" in said and "branches are left out; they count 0.05" in said
    assert "actuator bias" in said and "no input. Its effort is constant, 2 " in said
    robot = parse_robot(made.text, "here")
    mechanism = robot.mechanism
    work = make_workspace(mechanism.flat)
    evaluate(mechanism.flat, np.array(robot.model.initial_configuration), np.zeros(1), work)
    assert read_routes(mechanism, work)["rope"].tension == pytest.approx(500 * (1.0 + 0.3 / 20 - 0.98))
