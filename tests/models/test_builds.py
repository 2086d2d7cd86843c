"""A build of llama.cpp that would crash here is refused before anything is computed."""

import pytest

from libraryfs.errors import ModelUnavailable

pytestmark = pytest.mark.models

SAPPHIRE_RAPIDS = frozenset(
    ["avx", "avx2", "f16c", "fma", "bmi2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_tile", "amx_int8"]
)
OLDER = SAPPHIRE_RAPIDS - {"amx_bf16", "amx_tile", "amx_int8"}
PORTABLE = (
    "CPU : SSE3 = 1 | SSSE3 = 1 | AVX = 1 | AVX2 = 1 | F16C = 1 | FMA = 1 | BMI2 = 1 | LLAMAFILE = 1 | OPENMP = 1 | "
)
NATIVE = PORTABLE + "AVX512 = 1 | AVX512_VNNI = 1 | AVX512_BF16 = 1 | "


def refusal(built: str, processor: frozenset[str]) -> str:
    """The message, or nothing."""
    from libraryfs.models.worker_llama import refuse_build

    try:
        refuse_build(built, processor)
    except ModelUnavailable as error:
        return str(error)
    return ""


def test_amx_is_refused_where_the_processor_has_it() -> None:
    """In one line, which says what to do; without AMX in the build the same processor is fine."""
    said = refusal(NATIVE + "AMX_INT8 = 1 | REPACK = 1 | ", SAPPHIRE_RAPIDS)
    assert "AMX" in said
    assert "CMAKE_ARGS=-DGGML_NATIVE=OFF pip install" in said
    assert "\n" not in said
    assert not refusal(NATIVE, SAPPHIRE_RAPIDS)
    assert not refusal(PORTABLE, SAPPHIRE_RAPIDS)


def test_a_build_from_a_newer_processor_is_refused() -> None:
    """What was built on one machine and cannot run on the next is named."""
    said = refusal(NATIVE + "AMX_INT8 = 1 | ", OLDER)
    assert "AMX_INT8" in said
    said = refusal(NATIVE, frozenset(["avx", "avx2", "f16c", "fma", "bmi2"]))
    assert "AVX512, AVX512_BF16, AVX512_VNNI" in said
    assert not refusal(PORTABLE, OLDER)


def test_an_unknown_processor_and_other_architectures() -> None:
    """/proc/cpuinfo may say nothing; Arm's names are known."""
    assert not refusal(NATIVE, frozenset())
    arm = "CPU : NEON = 1 | ARM_FMA = 1 | DOTPROD = 1 | MATMUL_INT8 = 1 | "
    assert not refusal(arm, frozenset({"asimd", "asimddp", "i8mm"}))
    assert "MATMUL_INT8" in refusal(arm, frozenset({"asimd", "asimddp"}))


def test_the_build_at_hand_is_not_refused() -> None:
    """On the machine that runs the tests."""
    import llama_cpp

    from libraryfs.models import worker_llama

    built = llama_cpp.llama_print_system_info().decode()
    assert "AMX_INT8" not in built
    assert not refusal(built, worker_llama._processor())
