"""For all tests: one thread for each process, since they run side by side and threads that wait for each other crawl."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported, so it stands before that
os.environ.setdefault("TRITON_INTERPRET", "1")  # GPU kernels run on the CPU
