"""Shared by the Python benchmarks: options, the environment of a run and its result, and the
description of its machine."""
import argparse
import ctypes.util
import datetime
import glob
import json
import os
import subprocess
import sys

# Variables that limit a side to AVX2: GEOTRAIN_ISA geotrain, the others PyTorch and the libraries of both.
AVX2 = {
    "GEOTRAIN_ISA": "avx2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "DNNL_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "TORCHINDUCTOR_CPP_MARCH": "x86-64-v3",
}
ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
MPI = os.path.join(ROOT, "jobs/mpi.env")
TUNED_GLIBC = ("glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:"
               "glibc.malloc.trim_threshold=100000000000:glibc.malloc.top_pad=67108864")


def environment(threads=1, isa=None):
    """For a run: so many threads, and no setting that keeps OpenBLAS from this CPU's kernels.
    isa: "native" removes what the caller's environment holds either side to, "avx2" holds both
    to AVX2, None leaves it."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS_")}
    if isa:
        for key in AVX2:
            env.pop(key, None)
    if isa == "avx2":
        env.update(AVX2)
    for key in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        env[key] = str(threads)
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    with open(MPI, encoding="ascii") as file:
        env.update(line.strip().split("=", 1) for line in file if line[0].isupper())
    return env


def options(description, build=True):
    """A parser of options; build: of a script whose first argument is the build's folder."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if build:
        parser.add_argument("build")
    return parser


def program(build):
    return os.path.realpath(os.path.join(build, "geotrain"))


def attempt(command, env=None):
    return subprocess.run(command, env=env or environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def failed(command, done):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {' '.join(command)}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")


def call(*command, env=None):
    """What the command prints; if it fails, exits with that and its messages."""
    done = attempt(command, env)
    return done.stdout if done.returncode == 0 else failed(command, done)


def summary(run):
    with open(os.path.join(run, "summary.json"), encoding="utf-8") as file:
        return json.load(file)


def commit():
    done = attempt(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"])
    return done.stdout.strip() or "unknown"


def about():
    """The line above a table."""
    return f"{cpu()}; load {load()}; {datetime.date.today()}; commit {commit()}"


def load():
    return f"{os.getloadavg()[0]:.1f}"


def cpu():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return f"{os.cpu_count()} cores of {names[0] if names else 'an unknown CPU'}"


def huge_pages():
    """The kernel's setting of transparent huge pages: always, madvise or never."""
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="ascii") as file:
            return file.read().split("[")[1].split("]")[0]
    except (OSError, IndexError):
        return "never"


def allocators():
    """Name -> environment of the allocators available to a PyTorch, with huge pages where a
    program may ask for them.  And the reasons for those that are not there.

    tcmalloc itself never asks for huge pages; THP_MEM_ALLOC_ENABLE makes PyTorch 2 ask for them,
    for its large tensors.  glibc asks for all its memory, and so tuned it returns none of it to
    the kernel between the steps."""
    found, missing = {}, []
    tcmalloc = next(iter(sorted(glob.glob("/usr/lib/*/libtcmalloc_minimal.so.4"))), None)
    tcmalloc = tcmalloc or ctypes.util.find_library("tcmalloc_minimal")
    if tcmalloc:
        found["tcmalloc"] = {"LD_PRELOAD": tcmalloc, "TCMALLOC_RELEASE_RATE": "0", "THP_MEM_ALLOC_ENABLE": "1"}
    else:
        missing.append("tcmalloc: it is not installed (Debian: libtcmalloc-minimal4)")
    try:
        os.confstr("CS_GNU_LIBC_VERSION")
        found["glibc"] = {"GLIBC_TUNABLES": TUNED_GLIBC, "THP_MEM_ALLOC_ENABLE": "1"}
    except (OSError, ValueError):
        missing.append("tuned glibc: this C library is another")
    return found, missing
