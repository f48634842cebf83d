"""Installs the libraries with pip.

Version, description and licence stand in package.xml, which the ROS build reads; the rest in pyproject.toml.
"""

from pathlib import Path
from xml.etree import ElementTree

from setuptools import setup

package = ElementTree.parse(Path(__file__).resolve().parent / "package.xml").getroot()


def text(tag: str) -> str:
    """The text of an element of package.xml, on one line."""
    return " ".join(package.findtext(tag, "").split())


setup(version=text("version"), description=text("description"), license=text("license"))
