"""The figures of TPUs (cores, memories, speeds), by which kernels choose the sizes of blocks.

JAX 0.10.2 gives the same figures; an interpreted kernel may ask for any chip.
"""

from __future__ import annotations

import dataclasses
import enum

from ..base.typing import DTypeLike
from ..base.util import clipped
from ..devices.devices import devices
from ..types import dtypes

_FLOATS = frozenset(["float32", "bfloat16"])
_WIDE8 = frozenset(["float8_e5m2", "float8_e4m3b11fnuz"])
_NARROW8 = frozenset(["float8_e4m3fn", "float8_e5m2"])


class ChipVersion(enum.Enum):
    """A kind of TPU.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.ChipVersion.TPU_V4.supports_megacore
    True
    """

    TPU_V2 = "v2"
    TPU_V3 = "v3"
    TPU_V4I = "v4i"
    TPU_V4 = "v4"
    TPU_V5E = "v5e"
    TPU_V5P = "v5p"
    TPU_V6E = "v6e"
    TPU_7 = "7"
    TPU_7X = "7x"
    TPU_8I = "8i"

    def __str__(self) -> str:
        return self.value

    @property
    def is_lite(self) -> bool:
        """Whether the chip has one core."""
        return self.value in ("v4i", "v5e", "v6e")

    @property
    def num_physical_tensor_cores_per_chip(self) -> int:
        """How many cores the chip has."""
        return 1 if self.is_lite else 2

    @property
    def supports_megacore(self) -> bool:
        """Whether the chip's cores may be one device."""
        return self.value in ("v4", "v5p")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SparseCoreInfo:
    """The sparse cores of a chip."""

    num_cores: int
    num_subcores: int
    num_lanes: int
    vmem_capacity_bytes: int
    dma_granule_size_bytes: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class TpuInfo:
    """The figures of a chip, for each of its cores.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V6E, 1).mxu_column_size
    256
    """

    chip_version: ChipVersion
    generation: int
    num_cores: int
    num_lanes: int
    num_sublanes: int
    mxu_column_size: int
    num_mxus: int
    num_accumulators: int
    vmem_capacity_bytes: int
    cmem_capacity_bytes: int
    smem_capacity_bytes: int
    hbm_capacity_bytes: int
    mem_bw_bytes_per_second: int
    bf16_ops_per_second: int
    int8_ops_per_second: int
    fp8_ops_per_second: int
    int4_ops_per_second: int
    sparse_core: SparseCoreInfo | None = None

    @property
    def is_lite(self) -> bool:
        """Whether the chip has one core."""
        return self.chip_version.is_lite

    @property
    def is_split_chip(self) -> bool:
        """Whether a device is one of the chip's two cores."""
        return self.num_cores < self.chip_version.num_physical_tensor_cores_per_chip

    @property
    def is_megacore(self) -> bool:
        """Whether a device is both of the chip's cores."""
        return self.num_cores > 1

    def is_matmul_supported(self, lhs_dtype: DTypeLike, rhs_dtype: DTypeLike) -> bool:
        """Whether the chip multiplies matrices of these dtypes without casts.

        Args:
          lhs_dtype, rhs_dtype: the matrices' dtypes.

        >>> from olympus.experimental.pallas import tpu as pltpu
        >>> v5e = pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V5E, 1)
        >>> v5e.is_matmul_supported("int8", "int8"), v5e.is_matmul_supported("int8", "float32")
        (True, False)
        """
        lhs, rhs = [dtypes.long_name(dtypes.as_dtype(x)) for x in (lhs_dtype, rhs_dtype)]
        if self.generation < 4:
            return lhs == rhs == "float32"
        if self.generation == 4:
            return lhs in _FLOATS and rhs in _FLOATS | {"int8"}
        if self.generation > 6:
            return lhs in _FLOATS | _NARROW8 and rhs in (
                _FLOATS | _NARROW8 if lhs in _FLOATS else _NARROW8)
        return any(lhs in kinds and rhs in kinds for kinds in (
            _FLOATS | _WIDE8, {"int8", "uint8"}, {"int4", "uint4"}))

    def get_sublane_tiling(self, dtype: DTypeLike) -> int:
        """How many rows of a dtype a tile of memory has.

        Args:
          dtype: the elements' dtype.

        >>> from olympus.experimental.pallas import tpu as pltpu
        >>> pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V5E, 1).get_sublane_tiling("int8")
        32
        """
        bits = dtypes.itemsize_bits(dtypes.as_dtype(dtype))
        packed = 1 if bits == 16 and self.generation < 7 else max(32 // bits, 1)
        return self.num_sublanes * packed


_K, _M = 1 << 10, 1 << 20
#: of each chip: generation, columns of a matrix unit, matrix units, accumulators; bytes of VMEM,
#: CMEM, SMEM, HBM, and bytes a second; operations a second in bf16, int8, fp8, int4; sparse cores
_CHIPS = {
    "v2": (2, 128, 1, 0, 16 * _M, 0, 16 * _K, 8e9, 358e9, 23e12, 0, 0, 0, None),
    "v3": (3, 128, 2, 0, 16 * _M, 0, 16 * _K, 17.2e9, 412.5e9, 70e12, 0, 0, 0, None),
    "v4i": (4, 128, 4, 0, 16 * _M, 134e6, _M, 8.59e9, 614e9, 137e12, 0, 0, 0, None),
    "v4": (4, 128, 4, 0, 16 * _M, 67e6, _M, 17.2e9, 615e9, 137.5e12, 0, 0, 0, None),
    "v5e": (5, 128, 4, 0, 128 * _M, 0, _M, 17.2e9, 820e9, 197e12, 394e12, 0, 788e12, None),
    "v5p": (5, 128, 4, 0, 64 * _M, 0, _M, 51.5e9, 1230e9, 229.5e12, 459e12, 0, 920e12,
            (4, 16, 8, 512 * _K, 32)),
    "v6e": (6, 256, 2, 0, 128 * _M, 0, _M, 34.4e9, 1640e9, 920e12, 1840e12, 920e12, 3680e12,
            (2, 16, 8, 256 * _K, 32)),
    "7": (7, 256, 2, 128, 64 * _M, 0, _M, 103e9, 3700e9, 1155e12, 0, 2300e12, 0,
          (2, 16, 16, 512 * _K, 32)),
    "7x": (7, 256, 2, 128, 64 * _M, 0, _M, 103e9, 3700e9, 1155e12, 0, 2300e12, 0,
           (2, 16, 16, 512 * _K, 32)),
    "8i": (8, 256, 2, 256, 192 * _M, 0, _M, 154.5e9, 4300e9, 550.5e12, 0, 4404e12, 0,
           (1, 4, 16, 512 * _K, 64)),
}
#: the names that backends give to devices
_CHIP_OF_DEVICE_KIND = {
    "TPU v2": "v2", "TPU v3": "v3", "TPU v4 lite": "v4i", "TPU v4": "v4", "TPU v5 lite": "v5e",
    "TPU v5e": "v5e", "TPU v5": "v5p", "TPU v5p": "v5p", "TPU v6 lite": "v6e", "TPU v6e": "v6e",
    "TPU7": "7", "TPU7x": "7x",
}


def get_tpu_info_for_chip(chip_version: ChipVersion, num_tensor_cores_per_logical_device: int
                          ) -> TpuInfo:
    """The figures of a kind of TPU, with or without such a device.

    Args:
      chip_version: the chip.
      num_tensor_cores_per_logical_device: how many of its cores are one device: 1, or 2 for chips
        that support Megacore.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V5E, 1).vmem_capacity_bytes >> 20
    128
    """
    if not isinstance(chip_version, ChipVersion):
        raise TypeError(f"get_tpu_info_for_chip: chip_version {clipped(chip_version)} given; a "
                        "ChipVersion is required, pltpu.ChipVersion.TPU_V5E.")
    cores = num_tensor_cores_per_logical_device
    if cores != 1 and (cores != 2 or not chip_version.supports_megacore):
        raise ValueError(
            f"get_tpu_info_for_chip: num_tensor_cores_per_logical_device={cores} given for "
            f"{chip_version}; Lite chips and dual-core chips that do not support Megacore must "
            "have num_tensor_cores_per_logical_device=1, others 1 or 2.")
    generation, columns, units, accumulators, *numbers, sparse = _CHIPS[chip_version.value]
    vmem, cmem, smem, hbm, bandwidth, bf16, int8, fp8, int4 = map(int, numbers)
    return TpuInfo(
        chip_version=chip_version, generation=generation, num_cores=cores, num_lanes=128,
        num_sublanes=8, mxu_column_size=columns, num_mxus=units, num_accumulators=accumulators,
        vmem_capacity_bytes=vmem, cmem_capacity_bytes=cmem, smem_capacity_bytes=smem,
        hbm_capacity_bytes=hbm, mem_bw_bytes_per_second=bandwidth, bf16_ops_per_second=bf16,
        int8_ops_per_second=int8, fp8_ops_per_second=fp8, int4_ops_per_second=int4,
        sparse_core=None if sparse is None else SparseCoreInfo(**dict(zip(
            [f.name for f in dataclasses.fields(SparseCoreInfo)], sparse, strict=True))))


def get_tpu_info() -> TpuInfo:
    """The figures of the first device; ValueError unless it is a TPU.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.get_tpu_info.__name__
    'get_tpu_info'
    """
    device = devices()[0]
    kind = device.device_kind
    if kind not in _CHIP_OF_DEVICE_KIND:
        raise ValueError(f"get_tpu_info: Unsupported TPU device kind: {kind}; a TPU is required; "
                         "elsewhere name the chip, get_tpu_info_for_chip(ChipVersion.TPU_V5E, 1).")
    cores = getattr(device, "num_cores", None) or 1
    return get_tpu_info_for_chip(ChipVersion(_CHIP_OF_DEVICE_KIND[kind]), cores)

