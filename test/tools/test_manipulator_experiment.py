"""The experiment `manipulator`, and robots of experiments that differ from their files."""

from __future__ import annotations

from tensegrity_dynamics import load_robot
from tensegrity_tools.experiments import manipulator
from tensegrity_tools.experiments._runs import Variants


def test_parts_of_a_variant_have_the_fields_that_their_file_gives_all_of_them_once():
    seen, variants = [], Variants()

    def change(blocks):
        seen.extend(each["strain"] for block in blocks["repeat"] for each in block.get("cables", ()))

    found, robot = load_robot(str(variants.file("manipulator", change))), load_robot("manipulator")
    assert set(seen) == {0.05} and found.actuators == robot.actuators
    assert [each.young for each in found.mechanism.cables] == [each.young for each in robot.mechanism.cables]


def test_the_law_of_the_document_runs_with_cables_of_another_modulus():
    result = manipulator.run(paths="horizontal", share=0.02, young=4e9, plans=False, cases="from its floor")
    (law,) = result["paths"][0]["laws"]
    assert law["because"] == "it stayed on the path" and law["largest_error_m"] < 2e-4
