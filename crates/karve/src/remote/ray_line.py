"""Runs a karve worker in an actor of a Ray cluster and passes its frames through.

    ray_line.py ADDRESS GPUS RESOURCES PROGRAM ARGUMENT...

karve writes this file and starts it; its standard input and output are the line. It decides
nothing. When it ends, the actor ends, and the worker with it.
"""

import json
import os
import subprocess
import sys
import threading

import ray

CHUNK = 1 << 20


@ray.remote(max_restarts=0, max_concurrency=3)
class Worker:
    def __init__(self, argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def write(self, data):
        if not data:
            self.process.stdin.close()
            return
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self):
        return os.read(self.process.stdout.fileno(), CHUNK)


def main():
    address, gpus, resources, *argv = sys.argv[1:]
    # What Ray prints must not get between the frames.
    line = os.dup(1)
    os.dup2(2, 1)
    ray.init(address=address or None, log_to_driver=False, logging_level="error")
    options = {"num_gpus": float(gpus), "num_cpus": 1, "resources": json.loads(resources)}
    worker = Worker.options(**options).remote(argv)

    def forward():
        while True:
            data = os.read(0, CHUNK)
            ray.get(worker.write.remote(data))
            if not data:
                return

    threading.Thread(target=forward, daemon=True).start()
    while data := ray.get(worker.read.remote()):
        while data:
            data = data[os.write(line, data) :]


main()
