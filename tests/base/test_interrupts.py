"""Ctrl-C ends a computation, even one operation that Python cannot interrupt."""

import subprocess
import sys

import pytest

from tests.cli.running import environment

START = """
import hashlib, os, signal, sys, threading, time
from polyseme.base import interrupts
from polyseme.base.signals import GracefulStop

interrupts.PATIENCE = interrupts.GRACE = 0.1
entered = threading.Event()

def interrupt():
    entered.wait()
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
"""
ONE_OPERATION = """
with interrupts.prompt_interrupts(), GracefulStop(), interrupts.computing(lambda: "step 3 is kept"):
    entered.set()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)  # minutes in C
"""
LOOP = """
try:
    with interrupts.prompt_interrupts(), GracefulStop(), interrupts.computing():
        entered.set()
        while True:
            pass
except KeyboardInterrupt:
    sys.exit("interrupted")
"""
WRITING = """
with interrupts.prompt_interrupts(), GracefulStop() as stop:
    with interrupts.computing():
        pass
    entered.set()
    while stop.name is None:
        pass
    time.sleep(1.0)  # a checkpoint
    sys.exit("written")
"""


@pytest.mark.parametrize(
    ("code", "expected", "said"),
    [(ONE_OPERATION, 130, "polyseme: step 3 is kept"), (LOOP, 1, "interrupted"), (WRITING, 1, "written")],
)
def test_a_long_computation_ends(code, expected, said):
    call = [sys.executable, "-c", START + code]
    done = subprocess.run(call, capture_output=True, text=True, env=environment(), check=False)
    assert (done.returncode, done.stderr.strip()) == (expected, said)
