"""Powers of damping, winding, loads and friction at a state of a mechanism, for its energy balance."""

from __future__ import annotations

from ...numerics.compilation import allocation_free, for_compiled_callers
from ..dynamics.equations_of_motion import passive_efforts
from ..dynamics.joint_efforts import DAMPED, ELASTIC, RUBBED
from ..joints import INVOLUTE_EPSILON, INVOLUTE_LENGTH, INVOLUTE_RIGID, INVOLUTE_U
from ..kinematics.body_kinematics import body_kinematics, world_point
from ..late_kernels import CONTACTS, ROUTES
from ..loads import LOAD_BODY, LOAD_FORCE, LOAD_MOMENT, LOAD_POINT
from ..routing.columns import DAMPED as ROUTE_DAMPED
from ..routing.columns import ELASTIC as ROUTE_ELASTIC
from ..spatial import inertia_times, world_inertia
from ..touch.columns import DAMPED as GROUND_DAMPED
from ..touch.columns import RUBBED as GROUND_RUBBED
from ..touch.columns import STORED as GROUND_STORED

ACTUATORS = 4
"""Index of the power of the actuators among the powers of a step, after the four of `powers_in`."""


@for_compiled_callers
def cable_powers(flat, q, v, work, out):
    """Fill out with the power [W] dissipated by damping, and the power of winding (000, 3.1.9), 1/2 E A strain^2 l0'.

    Returns the elastic energy [J].
    """
    out[0] = out[1] = 0.0
    energy = 0.0
    for c in range(flat.cable_joint.shape[0]):
        i = flat.cable_joint[c]
        a, b = flat.q_start[i], flat.v_start[i]
        kind, radius = flat.kind[i], flat.radius[i]
        if kind == INVOLUTE_RIGID:
            continue
        rest, rest_rate = radius * q[a], radius * v[b]
        strain = work.strain[c]
        if kind == INVOLUTE_EPSILON:
            stretch_rate = rest_rate * strain + rest * v[b + 1]
        elif kind == INVOLUTE_U:
            stretch_rate = v[b + 1]
        elif kind == INVOLUTE_LENGTH:
            stretch_rate = v[b + 1] - rest_rate
        else:
            stretch_rate = 0.0
        stiffness = flat.cable_area[c] * flat.cable_young[c]
        tight = max(strain, 0.0)
        energy += 0.5 * stiffness * tight * tight * rest
        out[0] += (work.tension[c] - stiffness * tight) * stretch_rate
        out[1] += 0.5 * stiffness * tight * tight * rest_rate
    return energy


@for_compiled_callers
def load_power(flat, work):
    """Power [W] of the wrenches in work.load and of the loads of the mechanism, for the body velocities in work."""
    power = 0.0
    for i in range(work.load.shape[0]):
        moment, force, turning, moving = work.load[i, :3], work.load[i, 3:], work.velocity[i, :3], work.velocity[i, 3:]
        x, y, z = work.position[i, 0], work.position[i, 1], work.position[i, 2]
        power += moment[0] * turning[0] + moment[1] * turning[1] + moment[2] * turning[2]
        power += force[0] * (moving[0] + turning[1] * z - turning[2] * y)
        power += force[1] * (moving[1] + turning[2] * x - turning[0] * z)
        power += force[2] * (moving[2] + turning[0] * y - turning[1] * x)
    for n in range(flat.loads.shape[0]):
        row = flat.loads[n]
        i = int(row[LOAD_BODY])
        moment, force, turning, moving = row[LOAD_MOMENT:], row[LOAD_FORCE:], work.velocity[i, :3], work.velocity[i, 3:]
        world_point(work.rotation, work.position, i, row[LOAD_POINT:], work.point)
        x, y, z = work.point[0], work.point[1], work.point[2]
        power += moment[0] * turning[0] + moment[1] * turning[1] + moment[2] * turning[2]
        power += force[0] * (moving[0] + turning[1] * z - turning[2] * y)
        power += force[1] * (moving[1] + turning[2] * x - turning[0] * z)
        power += force[2] * (moving[2] + turning[0] * y - turning[1] * x)
    return power


@allocation_free
def powers_in(flat, q, v, work, out):
    """`powers_of` for the motion and forces stored in work, which were last evaluated at q and v."""
    energy = cable_powers(flat, q, v, work, out)
    out[2] = load_power(flat, work)
    out[3] = 0.0
    if flat.resistances.shape[0] > 0:
        energy += work.resistance[ELASTIC]
        out[0] += work.resistance[DAMPED]
        out[3] = work.resistance[RUBBED]
    if flat.late_kernels[ROUTES] != 0:
        for c in range(flat.routed_cables.shape[0]):
            energy += work.route_results[c, ROUTE_ELASTIC]
            out[0] += work.route_results[c, ROUTE_DAMPED]
    if flat.late_kernels[CONTACTS] != 0:
        total = work.contact_state[work.contact_state.shape[0] - 1]
        out[0] += total[GROUND_DAMPED]
        out[3] += total[GROUND_RUBBED]
    return energy


@allocation_free
def powers_of(flat, q, v, work, out):
    """Fill out (4,) [W]: dissipation of damping, power of winding, power of loads, dissipation of friction.

    The friction does not include the slip of cables. Returns the elastic energy [J] of cables and joints.
    """
    body_kinematics(flat, q, v, work)
    passive_efforts(flat, q, v, work)
    return powers_in(flat, q, v, work, out)


@for_compiled_callers
def kinetic_energy(flat, v, work):
    """Kinetic energy [J] of the motion stored in work."""
    energy = 0.0
    for i in range(flat.kind.shape[0]):
        world_inertia(
            flat.mass[i], flat.centre[i], flat.inertia[i], work.rotation[i], work.position[i], work.composite[i]
        )
        inertia_times(work.composite[i], work.velocity[i], work.six)
        for k in range(6):
            energy += 0.5 * work.velocity[i, k] * work.six[k]
    for d in range(flat.armature.shape[0]):
        energy += 0.5 * flat.armature[d] * v[d] * v[d]
    return energy


@for_compiled_callers
def energy_of_motion(flat, v, work):
    """Kinetic, gravitational and ground energy [J] of the state whose motion and forces are stored in work."""
    energy = kinetic_energy(flat, v, work)
    for i in range(flat.kind.shape[0]):
        world_point(work.rotation, work.position, i, flat.centre[i], work.point)
        for k in range(3):
            energy -= flat.mass[i] * flat.gravity[k] * work.point[k]
    if flat.late_kernels[CONTACTS] != 0:
        energy += work.contact_state[work.contact_state.shape[0] - 1, GROUND_STORED]
    return energy
