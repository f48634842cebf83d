"""Every command of README, CONTRIBUTING and the manual: the parser takes it, one rule says how it runs, and it runs.

The commands of a document run one after the other in one folder, as a reader types them. In place of serial ports they
use emulated servos, as docs/hardware.md says.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from patience import until

from tensegrity_tools.runtime.choices import choices_for, choices_from_texts, resolve

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(?:sh|bash|console|shell)\n(.*?)^```", re.MULTILINE | re.DOTALL)
TENSEGRITY = [sys.executable, "-m", "tensegrity_tools.cli"]


@dataclass(frozen=True)
class Rule:
    """How commands run that match a pattern.

    Attributes:
        quick: it takes no time to speak of and runs inside this process.
        never: why it does not run.
        more: words that are added to it. typed: what is typed into it.
        ends: what it says before it gets SIGINT, where it runs until then.
        stays: it goes on beside the commands that follow, and gets its SIGINT after them.
        beside: words of `tensegrity` that start a robot beside it.
        statuses: with which it may end.
    """

    pattern: str
    quick: bool = False
    never: str = ""
    more: tuple[str, ...] = ()
    typed: str = ""
    ends: str = ""
    stays: bool = False
    beside: tuple[str, ...] = ()
    statuses: tuple[int, ...] = (0,)


RULES = (
    Rule(r"sudo |source ", never="it changes the machine or the shell"),
    Rule(r"make (setup|test)$", never="what runs this test has done it"),
    Rule(r"make sim$"),
    Rule(r"(mkdir|export|colcon) ", never="builds another workspace, for minutes; CONTRIBUTING.md says how"),
    Rule(r"ros2 ", never="ros2 comes with a ROS installation only; the arguments of launch files are looked at below"),
    Rule(r"tensegrity (.* )?--help$", quick=True),
    Rule(r"tensegrity (new|export|urdf|fk|check) ", quick=True),
    Rule(r"tensegrity servo (spring|calibrate \S+ --points (?!.*--save))", quick=True),
    Rule(r"tensegrity servo calibrate .*--save", more=("--calibration", "saved.json"), typed="y\n"),
    Rule(r"tensegrity servo calibrate", typed="quit\n"),
    Rule(r"tensegrity servo home", typed="y\n"),
    Rule(r"tensegrity servo set-id", more=("--robot", "one_servo.yaml")),
    Rule(r"tensegrity servo scan --port /tmp", more=("--ids", "1-12")),  # few ids are waited for on a busy machine
    Rule(r"tensegrity servo scan"),
    Rule(r"tensegrity servo watch"),  # off a terminal it ends by itself
    Rule(r"tensegrity up .*--parameters"),
    Rule(r"tensegrity up .*--tour", more=("--no-view",)),
    Rule(r"tensegrity up replay ", more=("--no-view",)),
    Rule(r"tensegrity up ", more=("--no-view",), ends="keeps running"),
    Rule(r"tensegrity bag record ", ends="recording into", beside=("up", "sim", "tensebot", "--no-view")),
    Rule(r"tensegrity bag compare .*--tolerance", statuses=(0, 1)),  # two runs are ended at different instants
    Rule(r"tensegrity (bag|ik|simulate|sweep) "),
    Rule(r"python -m tensegrity_driver\.emulator ", ends="ready", stays=True),
)
"""The first one that matches; a command that none matches is an error."""

POINTS = """actuator,reading,length
saddle_1,1575,235.6 mm
saddle_1,1700,226.3 mm
saddle_1,1840,215.9 mm
saddle_1,1980,205.5 mm
saddle_1,2100,196.5 mm
"""
WEIGHTS = "mass,length\n0.5 kg,104.1 mm\n1 kg,108.2 mm\n1.5 kg,112.1 mm\n"
SERVOS = (
    "servos: {protocol: 2, defaults: {model: XL430-W250, spool_radius: 5 mm}, servos: [{actuator: pull_left, id: 1}]}"
)


@dataclass(frozen=True)
class Command:
    """A command of a document, without what begins a line of a console or comments on it."""

    document: str
    text: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)

    @property
    def rule(self) -> Rule:
        found = next((rule for rule in RULES if re.match(rule.pattern, self.text)), None)
        assert found is not None, f"{self.document}: no rule says how `{self.text}` runs; add one to RULES"
        return found


def commands(document: Path) -> Iterator[Command]:
    for block in BLOCK.findall(document.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words:
                yield Command(document.name, shlex.join(words))


def name_of(path: Path) -> str:
    return path.name


WITH_COMMANDS = [document for document in DOCUMENTS if any(commands(document))]


def test_all_kinds_of_command_blocks_are_found() -> None:
    fences = "\n".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    kinds = set(re.findall(r"^```(\w+)$", fences, re.MULTILINE))
    assert kinds <= {"sh", "bash", "console", "shell", "python", "yaml", "json", "text", "xml", "csv"}
    assert sum(len(list(commands(document))) for document in DOCUMENTS) > 50


@pytest.mark.parametrize("document", WITH_COMMANDS, ids=name_of)
def test_one_rule_says_how_each_command_runs_and_the_parser_takes_it(document: Path) -> None:
    for command in commands(document):
        assert command.rule
        program, *words = command.words
        if program == "tensegrity":
            parse(command, words)
        elif command.words[:3] == ["ros2", "launch", "tensegrity"]:
            parse_launch(command, *command.words[3:])
        elif program == "make":
            assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def parse(command: Command, rest: list[str]) -> None:
    """The real parser takes it: command, options, numbers and choices; nothing runs."""
    import typer
    from typer.main import get_command

    from tensegrity_tools.cli import program

    parser, name = get_command(program), "tensegrity"
    try:
        while hasattr(parser, "get_command"):  # a group: what it does not take itself is its command and the rest
            context = parser.make_context(name, rest[:1])
            name, rest = rest[0], rest[1:]
            parser = parser.get_command(context, name)
            assert parser is not None, f"there is no command {name}"
        parser.make_context(name, rest)
    except typer.Exit:
        pass  # --help
    except Exception as error:
        raise AssertionError(f"{command.document}: {command.text}: {error}") from error


def parse_launch(command: Command, file: str, *arguments: str) -> None:
    """The launch file is there, has these arguments, and finds nodes to start for what they say."""
    use = file.removesuffix(".launch.py")
    assert (ROOT / "launch" / file).is_file(), command.text
    texts = dict(each.split(":=", 1) for each in arguments if not each.startswith("--"))
    assert set(texts) <= {each.name for each in choices_for(use)} | {"rviz"}, f"{command.document}: {command.text}"
    choices = choices_from_texts(use, texts)
    if use != "replay":  # which looks into its bag
        assert resolve(choices)


@pytest.mark.parametrize("document", WITH_COMMANDS, ids=name_of)
def test_the_quick_commands_run(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensegrity_tools.cli import app

    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    for command in commands(document):
        if command.rule.quick:
            with pytest.raises(SystemExit) as ended:
                app(command.words[1:])
            assert not ended.value.code, command.text


def prepare(folder: Path) -> None:
    """What the reader has measured, and a robot with one servo."""
    (folder / "points.csv").write_text(POINTS, encoding="utf-8")
    (folder / "weights.csv").write_text(WEIGHTS, encoding="utf-8")
    robot = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)[0]
    (folder / "one_servo.yaml").write_text(robot + SERVOS, encoding="utf-8")


class Running:
    """A process that runs until it is ended, as a user at a terminal ends it."""

    def __init__(self, words: list[str], folder: Path, name: str, ends: str) -> None:
        self._log, self._text = folder / f"{name}.log", " ".join(words)
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                words, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        try:
            until(lambda: ends in self._said() or self._process.poll() is not None, self._said)
        except BaseException:
            self._process.kill()
            raise

    def _said(self) -> str:
        return self._log.read_text(errors="replace")

    def end(self) -> None:
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait() == 0, f"{self._text}: {self._said()[-3000:]}"
        assert "Traceback" not in self._said()


@pytest.mark.long
@pytest.mark.system
@pytest.mark.parametrize("document", WITH_COMMANDS, ids=name_of)
def test_all_commands_run(document: Path, tmp_path: Path) -> None:
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    prepare(tmp_path)
    staying: list[Running] = []
    try:
        for number, command in enumerate(commands(document)):
            if command.rule.never:
                continue
            staying += run(command, tmp_path, str(number))
    finally:
        for each in staying:
            each.end()
        shutil.rmtree("/tmp/tensebot", ignore_errors=True)


def run(command: Command, folder: Path, name: str) -> list[Running]:
    """Run a command to its end; what goes on beside others is returned."""
    rule = command.rule
    words = shlex.split(re.sub(r"--port /dev/\S+( --board /dev/\S+)?", "--port emulated", command.text))
    if words[0] in ("tensegrity", "python"):
        words = [*(TENSEGRITY if words[0] == "tensegrity" else [sys.executable]), *words[1:], *rule.more]
    beside = [Running([*TENSEGRITY, *rule.beside], folder, f"{name}_robot", "keeps running")] if rule.beside else []
    try:
        if rule.ends:
            running = Running(words, folder, name, rule.ends)
            if rule.stays:
                return [running]
            running.end()
            return []
        place = ROOT if words[0] == "make" else folder
        done = subprocess.run(words, cwd=place, input=rule.typed, capture_output=True, text=True)
        said = done.stdout[-1500:] + done.stderr[-1500:]
        assert "Traceback" not in done.stderr, said
        assert done.returncode in rule.statuses, f"{command.document}: {command.text}: {said}"
    finally:
        for each in beside:
            each.end()
    return []
