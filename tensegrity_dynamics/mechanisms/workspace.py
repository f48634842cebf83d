"""Work arrays of the compiled sweeps and integrators of one mechanism; one set for each thread."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from .joints import POSITION_COUNTS
from .late_kernels import POINTS
from .mechanism import FlatMechanism
from .routing.columns import RESULT_COLUMNS, STATE_COLUMNS, TABLE_COLUMNS
from .touch.columns import CONTACT_COLUMNS

Workspace = namedtuple(
    "Workspace",
    "rotation position velocity acceleration jacobian composite force "
    "load mass bias loop loop_bias loop_error passive strain tension resistance motion "
    "joint_rotation joint_translation subspace joint_bias axes six other three first second point gap speed "
    "direction change route_state route_results late_table contact_state",
)


def make_workspace(flat: FlatMechanism) -> Workspace:
    """Scratch and result arrays for one mechanism; they must not be shared between threads.

    load (b, 6) is an input: moment [N m] and force [N] on each body at its origin, in world axes.
    """
    bodies, dofs, rows, cables = flat.kind.size, flat.dof_parent.size, flat.row_kind.size, flat.cable_joint.size
    return Workspace(
        rotation=np.zeros((bodies, 3, 3)), position=np.zeros((bodies, 3)), velocity=np.zeros((bodies, 6)),
        acceleration=np.zeros((bodies, 6)), jacobian=np.zeros((dofs, 6)), composite=np.zeros((bodies, 10)),
        force=np.zeros((bodies, 6)), load=np.zeros((bodies, 6)), mass=np.zeros((dofs, dofs)), bias=np.zeros(dofs),
        loop=np.zeros((rows, dofs)), loop_bias=np.zeros(rows), loop_error=np.zeros(rows), passive=np.zeros(dofs),
        strain=np.zeros(cables), tension=np.zeros(cables), resistance=np.zeros(3),
        motion=np.zeros((flat.resistances.shape[0], 2)), joint_rotation=np.zeros((3, 3)),
        joint_translation=np.zeros(3), subspace=np.zeros((6, 6)), joint_bias=np.zeros(6), axes=np.zeros((3, 3)),
        six=np.zeros(6), other=np.zeros(6), three=np.zeros(3), first=np.zeros(3), second=np.zeros(3),
        point=np.zeros(3), gap=np.zeros(3), speed=np.zeros(3), direction=np.zeros(6), change=np.zeros(6),
        route_state=np.zeros((flat.route_elements.shape[0], STATE_COLUMNS)),
        route_results=np.zeros((flat.routed_cables.shape[0], RESULT_COLUMNS)),
        late_table=np.zeros(TABLE_COLUMNS if flat.late_kernels.any() else 0, dtype=np.int64),
        contact_state=np.zeros((flat.late_kernels[POINTS] + 1, CONTACT_COLUMNS)),
    )  # fmt: skip


StageWorkspace = namedtuple(
    "StageWorkspace",
    "q v q_rate q_sum v_sum step powers taken piece_q piece_v pattern new_pattern start_powers kept_works kept_slip "
    "careful_q careful_v careful_works careful_slip across",
)


def make_stage_workspace(flat: FlatMechanism) -> StageWorkspace:
    """Scratch arrays of the integrator."""
    positions, velocities = int(POSITION_COUNTS[flat.kind].sum()), flat.dof_parent.size
    watched = flat.cable_joint.size + 2 * flat.resistances.shape[0] + flat.route_elements.shape[0]
    watched += 4 * int(flat.late_kernels[POINTS])
    return StageWorkspace(
        q=np.zeros(positions), v=np.zeros(velocities), q_rate=np.zeros(positions), q_sum=np.zeros(positions),
        v_sum=np.zeros(velocities), step=np.zeros(velocities), powers=np.zeros(5), taken=np.zeros(5),
        piece_q=np.zeros(positions), piece_v=np.zeros(velocities), pattern=np.zeros(watched, dtype=np.int64),
        new_pattern=np.zeros(watched, dtype=np.int64), start_powers=np.zeros(5),
        kept_works=np.zeros(5), kept_slip=np.zeros((flat.route_elements.shape[0], 2)),
        careful_q=np.zeros(positions), careful_v=np.zeros(velocities), careful_works=np.zeros(5),
        careful_slip=np.zeros((flat.route_elements.shape[0], 2)), across=np.zeros(1, dtype=np.bool_),
    )  # fmt: skip
