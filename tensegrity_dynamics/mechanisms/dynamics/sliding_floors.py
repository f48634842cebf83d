"""Lower tension limits for equations without friction, applied to routed cables over guides with friction.

At every guide the tension changes at most by the factor e^(friction x wrap) (Euler-Eytelwein). So the true tension is
nowhere less than the tension computed without friction, divided by the product of these factors of all guides. The
lower limit holds on the worst side if the computed tension is at least e^(sum of friction x wrap) times this limit. The
wrap angles are those of the start.
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
    """Lower tension limit [N] by name of every cable wound by an actuator; `model` has the friction of the robot
    file."""
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
