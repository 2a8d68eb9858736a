#!/usr/bin/env python3
"""Compiles a template for devices that this machine lacks, with many settings of its knobs.

    testing/languages.py cutile|cute-dsl|flydsl DIR [ARCHITECTURE...]

DIR holds kernel.py. Needs the package of the language, and neither a GPU nor PyTorch: what a module
needs of PyTorch to be loaded is imitated. Prints a line for each setting and architecture, or
"skipped" if the package is not there. Fails if one of them does not compile.
"""

import glob
import importlib.util
import io
import os
import re
import subprocess
import sys
import tempfile
import types

# The architectures unless some are named, and settings: the first is the template's own.
PLANS = {
    "cutile": (["sm_90", "sm_100"], [{}, {"TILE_M": 128, "TILE_N": 128, "TILE_K": 64, "GROUP_SIZE_M": 8},
                                     {"TILE_M": 64, "TILE_N": 256, "OCCUPANCY": 2}]),
    "cute-dsl": (["sm_90a", "sm_100a"], [{}, {"ROWS": 8, "COLUMNS": 8, "TILE_K": 16, "PAD": 1},
                                         {"ROWS": 2, "COLUMNS": 4, "TILE_K": 32}]),
    "flydsl": (["gfx942", "gfx950"], [{}, {"BLOCK": 256, "VECTOR": 4}]),
}
PACKAGES = {"cutile": "cuda.tile", "cute-dsl": "cutlass", "flydsl": "flydsl"}


class FakeTensor:
    """What FlyDSL asks of a tensor when it compiles."""

    shape, dtype = (8192,), "float32"
    element_size = lambda self: 4
    stride = lambda self: (1,)
    data_ptr = lambda self: 0


def fake_torch():
    torch = types.ModuleType("torch")
    torch.__spec__ = importlib.util.spec_from_loader("torch", loader=None)
    names = "float16 bfloat16 float32 float64 bool uint8 int8 int16 int32 int64"
    vars(torch).update((name, name) for name in names.split())
    torch.Tensor = FakeTensor
    torch.cuda = types.SimpleNamespace(Stream=type("Stream", (), {}))
    return torch


def cutile(module, arch):
    import cuda.tile as ct
    from cuda.tile import compilation as of

    sizes = []
    # With rows that the memory accelerator can copy, and with others.
    for divisor in (8, 1):
        array = of.ArrayConstraint(
            ct.float16, 2, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(),
            may_alias_internally=False, stride_constant=(None, 1), stride_divisible_by=(divisor, 1),
            shape_divisible_by=(divisor, divisor), base_addr_divisible_by=16,
        )
        values = [module.TILE_M, module.TILE_N, module.TILE_K, module.GROUP_SIZE_M]
        constants = [of.ConstantConstraint(value) for value in values]
        signature = of.KernelSignature([array] * 3 + constants, of.CallingConvention.cutile_python_v1())
        made = io.BytesIO()
        of.export_kernel(module.matmul, [signature], made, gpu_code=arch, output_format="cubin")
        sizes.append(len(made.getvalue()))
    return sizes


def cute_dsl(module, arch):
    # It was compiled when it was loaded.
    return [len(module.COMPILED.__cubin__)]


def flydsl(module, arch):
    x = FakeTensor()
    module.launch(x, x, x, 8192)
    return []


def find_linker(place):
    """FlyDSL links with the lld of ROCm. Without ROCm, that of LLVM 18 or newer is as good."""
    linkers = sorted(glob.glob("/usr/lib/llvm-*/bin/ld.lld"))
    if linkers and "ROCM_PATH" not in os.environ and not os.path.isdir("/opt/rocm"):
        os.makedirs(os.path.join(place, "llvm/bin"), exist_ok=True)
        if not os.path.lexists(os.path.join(place, "llvm/bin/ld.lld")):
            os.symlink(linkers[-1], os.path.join(place, "llvm/bin/ld.lld"))
        os.environ["ROCM_PATH"] = place


def one(language, path, arch):
    """Compiles a file, in a process of its own."""
    import numpy  # before the imitation: it asks for the real one

    # The packages that are not imitated must not take it for the real one.
    if language == "cute-dsl":
        os.environ.update(CUTE_DSL_ARCH="sm_80", CUTE_DSL_DUMP_DIR=os.path.dirname(path))
        import cutlass.cute as cute

        # Compiled for another device than the one in the environment, it is not loaded.
        cute.compile = cute.compile[cute.GPUArch(arch), cute.KeepCUBIN()]
    if language == "flydsl":
        os.environ.update(COMPILE_ONLY="1", FLYDSL_GPU_ARCH=arch, FLYDSL_RUNTIME_ENABLE_CACHE="0")
        find_linker(os.path.dirname(path))
    sys.modules["torch"] = fake_torch()
    spec = importlib.util.spec_from_file_location("kernel", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel"] = module
    spec.loader.exec_module(module)
    compiled = {"cutile": cutile, "cute-dsl": cute_dsl, "flydsl": flydsl}[language]
    print(*compiled(module, arch))


def main(language, directory, *chosen):
    if importlib.util.find_spec(PACKAGES[language].split(".")[0]) is None:
        return print("skipped: this Python has no %s" % PACKAGES[language])
    architectures, settings = PLANS[language]
    source = open(os.path.join(directory, "kernel.py")).read()
    with tempfile.TemporaryDirectory() as place:
        for number, setting in enumerate(settings):
            text = source
            for name, value in setting.items():
                text, n = re.subn(r"(?m)^%s = .*$" % name, "%s = %s" % (name, value), text)
                assert n == 1, name
            path = os.path.join(place, "kernel%d.py" % number)
            open(path, "w").write(text)
            for arch in chosen or architectures:
                command = [sys.executable, os.path.abspath(__file__), "--one", language, path, arch]
                ran = subprocess.run(command, capture_output=True, text=True)
                if ran.returncode != 0:
                    sys.exit("%s %s %s: %s" % (language, arch, setting, ran.stderr[:2000]))
                print(language, arch, setting, ran.stdout.strip().split("\n")[-1])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
