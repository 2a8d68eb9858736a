#!/usr/bin/env python3
"""Compiles the kernels of gpu-entries.py in cuTile and CuTe DSL for a device that this machine lacks.

    testing/entries/compile.py [ARCHITECTURE]

Needs the packages of these languages, and neither a GPU nor PyTorch. Prints a line for each entry, with the
bytes of both sides or the fault; "skipped" where a package is not there. Fails if one does not compile.
"""

import importlib.util
import io
import os
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]


def cubin(side, kind, arrays, arch):
    """Bytes of one side in cuTile. The arrays are aligned, as those of PyTorch are."""
    import cuda.tile as ct
    from cuda.tile import compilation as of

    kernel, constants = side
    array = of.ArrayConstraint(
        kind, 2, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(), may_alias_internally=False,
        stride_constant=(None, 1), stride_divisible_by=(16, 1), shape_divisible_by=(16, 16), base_addr_divisible_by=16,
    )
    values = [of.ConstantConstraint(value) for value in constants]
    signature = of.KernelSignature([array] * arrays + values, of.CallingConvention.cutile_python_v1())
    made = io.BytesIO()
    of.export_kernel(kernel, [signature], made, gpu_code=arch, output_format="cubin")
    return len(made.getvalue())


def cutile(arch):
    import cuda.tile as ct
    import tiles

    for name, (shape, *sides) in tiles.PAIRS.items():
        kind = ct.float16 if shape.endswith("f16") else ct.float32
        arrays = 3 if shape.startswith("gemm") else 2
        yield name, lambda: [cubin(side, kind, arrays, arch) for side in sides]


def cute(arch):
    # Compiled for another device than the one in the environment, it is not loaded.
    os.environ.update(CUTE_DSL_ARCH="sm_80", CUTE_DSL_DUMP_DIR=tempfile.gettempdir())
    import cutlass
    import cutlass.cute as cute
    from cutlass.cute.runtime import make_fake_compact_tensor
    from cute_add import add

    compiler = cute.compile[cute.GPUArch(arch + "a"), cute.KeepCUBIN()]
    array = make_fake_compact_tensor(cutlass.Float32, (4096,))
    yield "cute-compile-once, cute-recompile-each-call", lambda: [len(compiler(add, array, array).__cubin__)]


def main(arch="sm_90"):
    failed = False
    for package, language in ("cuda", cutile), ("cutlass", cute):
        if importlib.util.find_spec(package) is None:
            print("skipped %s: this Python has no %s" % (language.__name__, package))
            continue
        for name, compiled in language(arch):
            try:
                print(name, arch, *compiled())
            except Exception as error:
                failed = True
                print(name, arch, "failed: %s: %s" % (type(error).__name__, str(error)[:2000]))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
