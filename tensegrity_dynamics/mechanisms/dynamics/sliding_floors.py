"""Floors of tension for equations in which routed cables slide freely over guides that really rub.

Along a strand the tension changes by at most e^(friction x wrap) at every guide (Euler-Eytelwein), so that it is
nowhere less than what is reckoned without friction, divided by that of all its guides. A floor is kept on that worst
side where the reckoned tension keeps e^(sum of friction x wrap) of it. Wraps are those of the start.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...robots.actuator import Actuator
from ..mechanism_model import MechanismModel
from ..route_readings import read_routes
from ..routing.columns import FRICTION
from ..workspace import make_workspace
from .equations_of_motion import evaluate


def sliding_floors(model: MechanismModel, actuators: Iterable[Actuator]) -> dict[str, float]:
    """N by the name of every cable that an actuator winds; `model` has the friction that the file states."""
    floors, mechanism = model.tension_floors(actuators), model.mechanism
    rubbing = [each for each in mechanism.routes if each.rubbing.size and floors.get(each.name, 0.0) > 0.0]
    if not rubbing:
        return floors
    work = make_workspace(mechanism.flat)
    evaluate(mechanism.flat, model.start, np.zeros(mechanism.velocity_count), work)
    readings = read_routes(mechanism, work)
    for each in rubbing:
        turned = np.abs(np.array(readings[each.name].wraps)[each.rubbing])
        floors[each.name] *= float(np.exp(each.elements[each.rubbing, FRICTION] @ turned))
    return floors
