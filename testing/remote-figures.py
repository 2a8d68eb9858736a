#!/usr/bin/env python3
"""What remote execution costs, on a private sshd and a private SLURM of this machine.

    testing/remote-figures.py KARVE [--settings N] [--build SECONDS]

Needs root, openssh-server, slurmctld, slurmd, slurm-client and munge. Prints a table: a message
over ssh, a block over ssh against a block here, the time to the first block, bytes for the first
and the second candidate, and settings on eight nodes against one. Builds sleep, so that eight nodes
on one machine do not compete for its cores.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNEL = """# karve: knob A in 1..16
A=1
# karve: knob B in 1..16
B=1
result=7
TIME=$((100 + (A - 4) * (A - 4) * 3 + (B - 5) * (B - 5) * 7))
"""


class Lab:
    def __init__(self, options, name, kernel=None, build=None):
        self.options, self.dir = options, options.dir / name
        shutil.copytree(ROOT / "testing/toy", self.dir)
        shutil.copytree(ROOT / "testdata/gains", self.dir, dirs_exist_ok=True)
        if kernel:
            (self.dir / "kernel.sh").write_text(kernel)
        if build:
            text = (self.dir / "build.sh").read_text()
            (self.dir / "build.sh").write_text(text.replace("mkdir", f"sleep {build}\nmkdir", 1))
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "the project"]):
            subprocess.run(["git", *words], cwd=self.dir, check=True, env=options.env)

    def karve(self, *words):
        start = time.monotonic()
        said = subprocess.run(
            [self.options.karve, *words],
            cwd=self.dir,
            env=self.options.env,
            capture_output=True,
            text=True,
        )
        assert said.returncode == 0, said
        return said.stdout, time.monotonic() - start

    def events(self):
        lines = (self.dir / ".karve/toy/events.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def block_ms(self):
        spent = [e["spent_ms"] for e in self.events() if e["event"]["type"] == "block_measured"]
        return statistics.median(spent)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("karve", type=pathlib.Path)
    parser.add_argument("--settings", type=int, default=200)
    parser.add_argument("--build", default="1")
    options = parser.parse_args()
    options.karve = options.karve.resolve()
    options.dir = pathlib.Path(tempfile.mkdtemp(prefix="karve-remote-"))
    # The user of munge must get through.
    options.dir.chmod(0o755)
    ssh, slurm = options.dir / "ssh", options.dir / "slurm"
    calm = {"KARVE_TEST_PRESSURE_FILE": str(ROOT / "testing/calm")}
    leases = {"KARVE_LEASE_DIR": str(options.dir / "leases")}
    names = {f"GIT_{role}_{what}": "karve@localhost" for role in ("AUTHOR", "COMMITTER")
             for what in ("NAME", "EMAIL")}
    config = {"XDG_CONFIG_HOME": str(options.dir / "config")}
    conf = {"SLURM_CONF": str(slurm / "slurm.conf")}
    options.env = os.environ | calm | leases | names | config | conf
    table = options.dir / "config/karve/remotes.toml"
    table.parent.mkdir(parents=True)
    far = "\n".join(f'{k} = "{v}"' for k, v in (calm | leases | conf).items())
    lines = ""
    for name, devices in (("one", 1), ("eight", 8)):
        lines += f'[{name}]\nengine = "slurm"\ndevices = {devices}\nargs = ["--exclusive"]\n'
        lines += f'dir = "{options.dir}/{name}"\n[{name}.env]\n{far}\n'
    lines += f'[box]\nengine = "ssh"\nhost = "far1"\noptions = ["-F", "{ssh}/ssh_config"]\n'
    table.write_text(lines + f'dir = "{options.dir}/box"\n[box.env]\n{far}\n')
    port = str(20000 + os.getpid() % 9000)
    subprocess.run(["bash", ROOT / "testing/sshd.sh", ssh, port], check=True)
    subprocess.run(["bash", ROOT / "testing/slurm.sh", "start", slurm, "8"], check=True)
    try:
        measure(options)
    finally:
        os.kill(int((ssh / "sshd.pid").read_text()), 9)
        subprocess.run(["bash", ROOT / "testing/slurm.sh", "stop", slurm], check=False)
        shutil.rmtree(options.dir, ignore_errors=True)


def measure(options):
    def show(what, figure):
        print(f"{what:<58} {figure}", flush=True)

    here, there = Lab(options, "here"), Lab(options, "there")
    said, _ = there.karve("remote", "check", "box")
    show("first contact over ssh, with a copy of karve", said.splitlines()[0])
    said, _ = there.karve("remote", "check", "box")
    show("the next one", said.splitlines()[0])
    show("a message over ssh", next(line for line in said.splitlines() if "there and back" in line))
    here.karve("run", "--yes")
    begin = time.time()
    there.karve("run", "--yes", "--on", "box")
    first = [e["at_ms"] for e in there.events() if e["event"]["type"] == "block_measured"][0]
    show("from run --on to the first block", f"{first / 1e3 - begin:.2f} s")
    a, b = here.block_ms(), there.block_ms()
    show("a block here and over ssh (median)", f"{a:.0f} ms and {b:.0f} ms, {b - a:.0f} ms more")
    budget = ["--budget", str(options.settings)]
    took = {}
    for remote in ("one", "eight"):
        lab = Lab(options, f"tune-{remote}", KERNEL, options.build)
        _, took[remote] = lab.karve("tune", "--on", remote, *budget)
        show(f"{options.settings} settings on {remote} of the nodes", f"{took[remote]:.1f} s")
    show("eight nodes against one", f"{took['one'] / took['eight']:.2f}x")


main()
