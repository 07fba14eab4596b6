"""Accelerators to compile for: names, peaks by the makers' data sheets, and the description of a
GPU that its compiler needs on a machine without one.

Peaks are for one chip: operations a second of matrix products, by dtype and without sparsity,
bytes a second of its memory, and bytes a second that it sends to others.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from math import prod
from typing import NamedTuple


class Chip(NamedTuple):
    """An accelerator.

    Attributes:
      platform: "tpu" or "cuda".
      kind: the `device_kind` of its devices.
      cores: the devices of a chip.
      memory: bytes that programs on one device may use.
      bandwidth: bytes a second of a chip's memory.
      flops: operations a second of a chip, by the dtype of the factors; others count as the
        first.
      link: bytes a second that a chip sends to its neighbours, over all links together.
      source: where the numbers come from.
      description: of a GPU, the fields of XLA's `GpuDeviceInfoProto`.
    """

    platform: str
    kind: str
    cores: int
    memory: int
    bandwidth: float
    flops: Mapping[str, float]
    link: float
    source: str
    description: Mapping[str, int | float] = {}

    def peak(self, dtype: str) -> float:
        """Operations a second of one device on operands of a dtype."""
        return self.flops.get(dtype, next(iter(self.flops.values()))) / self.cores


_GIB = 1 << 30
# Each generation has its page there: v2 to v6e and tpu7x. Peaks of products are those of the pages,
# v5p's of int8 its announcement's; memory is what libtpu 0.0.42.1 gives to a program. A link sends
# half of the bidirectional bandwidth of the page (v5e 400, v5p 1200, v6e 800, tpu7x 1200 GB/s), or
# a chip's part of a pod's bandwidth of all-reduce (v3: 340 TB/s of 1024 chips, four links of 656
# Gbit/s; v4: 1.1 PB/s of 4096, six links of 50 GB/s). The page of v2 has no numbers and names its
# makers' paper (Jouppi et al., Communications of the ACM 63.7, 2020): 46 TFLOP/s, 700 GB/s, four
# links of 496 Gbit/s.
_TPU = "cloud.google.com/tpu/docs, system architecture; memory as libtpu 0.0.42.1 reports it"
# TPUs multiply float32 operands as bfloat16 unless a precision is asked for.
_TPUS = {
    "v2": ("TPU v2", 2, 7.48, 700e9, {"bfloat16": 46e12}, 248e9),
    "v3": ("TPU v3", 2, 15.48, 900e9, {"bfloat16": 123e12}, 328e9),
    "v4": ("TPU v4", 2, 15.25, 1200e9, {"bfloat16": 275e12, "int8": 275e12}, 300e9),
    "v5e": ("TPU v5 lite", 1, 15.75, 819e9, {"bfloat16": 197e12, "int8": 393e12}, 200e9),
    "v5p": ("TPU v5", 1, 95.74, 2765e9, {"bfloat16": 459e12, "int8": 918e12}, 600e9),
    "v6e": ("TPU v6 lite", 1, 31.25, 1638e9, {"bfloat16": 918e12, "int8": 1836e12}, 400e9),
    "tpu7x": ("TPU7x", 2, 94.75, 7380e9, {
        "bfloat16": 2307e12, "float8_e4m3fn": 4614e12, "float8_e5m2": 4614e12}, 600e9),
}
# GpuDeviceInfoProto's fields, from XLA's own files of GPUs (xla/backends/gpu/target_config/specs),
# whose authors read them from the driver. L4's are NVIDIA's: the Ada tuning guide (shared memory,
# threads and registers of a multiprocessor of compute capability 8.9) and the L4 data sheet.
_COMMON = {"threads_per_block_limit": 1024, "threads_per_warp": 32,
           "shared_memory_per_block": 49152, "threads_per_core_limit": 2048,
           "block_dim_limit_x": 2147483647, "block_dim_limit_y": 65535, "block_dim_limit_z": 65535,
           "registers_per_core_limit": 65536, "registers_per_block_limit": 65536}
_HOPPER = {**_COMMON, "shared_memory_per_core": 233472, "shared_memory_per_block_optin": 232448,
           "core_count": 132, "fpus_per_core": 128, "l2_cache_size": 52428800,
           "clock_rate_ghz": 1.98, "major": 9, "minor": 0}
_GPU = "NVIDIA's data sheet of the SXM module, dense; sizes: XLA's target_config/specs"
# From other sites that cite NVIDIA's data sheets; not compared with the sheets.
_SECOND_HAND = "others' pages on NVIDIA's data sheet, dense; sizes: "
_HOPPER_FLOPS = {"bfloat16": 989e12, "float16": 989e12, "float32": 494e12, "float64": 67e12,
                 "int8": 1979e12, "float8_e4m3fn": 1979e12, "float8_e5m2": 1979e12}
CHIPS: dict[str, Chip] = {
    **{name: Chip("tpu", kind, cores, int(memory * _GIB), bandwidth, flops, link, _TPU)
       for name, (kind, cores, memory, bandwidth, flops, link) in _TPUS.items()},
    "a100": Chip(
        "cuda", "NVIDIA A100-SXM4-80GB", 1, 85100068864, 2039.04e9,
        {"bfloat16": 312e12, "float16": 312e12, "float32": 156e12, "float64": 19.5e12,
         "int8": 624e12}, 300e9, _GPU, {
            **_COMMON, "shared_memory_per_core": 167936, "shared_memory_per_block_optin": 166912,
            "core_count": 108, "fpus_per_core": 64, "l2_cache_size": 41943040,
            "clock_rate_ghz": 1.41, "major": 8, "minor": 0}),
    "h100": Chip("cuda", "NVIDIA H100 80GB HBM3", 1, 84942979072, 3352.32e9, _HOPPER_FLOPS, 450e9,
                 _GPU, _HOPPER),
    "h200": Chip("cuda", "NVIDIA H200", 1, 151397597184, 4800e9, _HOPPER_FLOPS, 450e9, _GPU,
                 _HOPPER),
    "b200": Chip(
        "cuda", "NVIDIA B200", 1, 191514411008, 7672.32e9,
        {"bfloat16": 2250e12, "float16": 2250e12, "float32": 1125e12, "float64": 37e12,
         "int8": 4500e12, "float8_e4m3fn": 4500e12, "float8_e5m2": 4500e12}, 900e9,
        _SECOND_HAND + "XLA's target_config/specs", {
            **_HOPPER, "core_count": 148, "l2_cache_size": 132644864, "clock_rate_ghz": 1.965,
            "major": 10, "minor": 0}),
    "l4": Chip(
        "cuda", "NVIDIA L4", 1, 23034 << 20, 300e9,
        {"bfloat16": 121e12, "float16": 121e12, "float32": 60e12, "float64": 0.47e12,
         "int8": 242e12, "float8_e4m3fn": 242e12, "float8_e5m2": 242e12}, 32e9,
        _SECOND_HAND + "Ada tuning guide", {
            **_COMMON, "shared_memory_per_core": 102400, "shared_memory_per_block_optin": 101376,
            "threads_per_core_limit": 1536, "core_count": 58, "fpus_per_core": 128,
            "l2_cache_size": 50331648, "clock_rate_ghz": 2.04, "major": 8, "minor": 9}),
}
_ALIASES = {"v7x": "tpu7x", "v5litepod": "v5e", "v6litepod": "v6e"}
_SHAPE = re.compile(r"[1-9]\d*(x[1-9]\d*)*")
_CUDNN = "dnn_version_info { major: 9 minor: 10 patch: 0 }"


class Target(NamedTuple):
    """Devices to compile for: a chip and how many there are along each axis.

    Attributes:
      name: of the chip, a key of `CHIPS`.
      sizes: of a TPU slice, its chips along each axis of the torus; of GPUs (hosts, GPUs of a
        host), or (slices, hosts, GPUs of a host).
    """

    name: str
    sizes: tuple[int, ...]

    @property
    def chip(self) -> Chip:
        return CHIPS[self.name]

    def __str__(self) -> str:
        return f"{self.name}:{'x'.join(map(str, self.sizes))}"

    def topology(self) -> tuple[str, str, Mapping[str, object]]:
        """The plugin, and the name and options by which it knows the topology."""
        if self.chip.platform == "tpu":
            # A host has 2x2 chips. A slice of one or two chips is one host with fewer chips.
            host = {"chips_per_host_bounds": [*self.sizes, 1][:3]} if prod(self.sizes) < 4 else {}
            return "tpu", str(self), host
        slices, hosts, each = (1, 1, 1, *self.sizes)[-3:]
        return "cuda", self.name, {"topology": f"{slices}x{hosts}x{each}",
                                   "target_config": _target_config(self.chip)}


def _target_config(chip: Chip) -> str:
    """XLA's `GpuTargetConfigProto` of a GPU, as text."""
    fields = dict(chip.description)
    major, minor = fields.pop("major"), fields.pop("minor")
    fields |= {"memory_bandwidth": int(chip.bandwidth), "device_memory_size": chip.memory}
    lines = [f"{name}: {value}" for name, value in fields.items()]
    return "\n".join(["gpu_device_info {", *lines,
                      f"cuda_compute_capability {{ major: {major} minor: {minor} }}", "}",
                      'platform_name: "CUDA"', _CUDNN, f'device_description_str: "{chip.kind}"'])


def parse_target(text: str) -> Target:
    """The target of a name such as "tpu:v5e:2x2", "v5e:2x2", "h100:8" or "cuda:h100:2x8".

    ValueError, with the names that exist, the nearest first, for one that does not.

    >>> parse_target("tpu:v6e:16x16"), str(parse_target("h100"))
    (Target(name='v6e', sizes=(16, 16)), 'h100:1')
    """
    parts = text.lower().split(":")
    platform = parts.pop(0) if parts[0] in ("tpu", "cuda", "gpu") and len(parts) > 1 else ""
    name, *rest = parts
    name = _ALIASES.get(name, name)
    names = list(CHIPS)
    near = difflib.get_close_matches(name, names, len(names), 0.0)
    if name not in CHIPS or len(rest) > 1:
        raise ValueError(
            f"target: {text!r} given; a chip and the numbers of them, as v5e:2x2 or h100:8, are "
            f"required; chips are {', '.join(dict.fromkeys([*near, *names]))}.")
    chip = CHIPS[name]
    if platform and (platform == "tpu") != (chip.platform == "tpu"):
        raise ValueError(f"target: {text!r} given; {name} is of the platform {chip.platform}; "
                         f"write {chip.platform}:{':'.join([name, *rest])}.")
    shape = rest[0] if rest else "1"
    most = 3
    if not _SHAPE.fullmatch(shape) or shape.count("x") >= most:
        raise ValueError(f"target: {text!r} given; the numbers of chips are required as 8, 2x2 or "
                         "4x4x4, one for each axis.")
    sizes = tuple(map(int, shape.split("x")))
    axes = 3 if name in ("v4", "v5p", "tpu7x") else 2
    if chip.platform == "tpu" and len(sizes) != axes:
        if sizes != (1,):
            example = "2x2x1" if axes == 3 else "2x2"
            raise ValueError(f"target: {text!r} given; a slice of {name} has {axes} axes; write "
                             f"them all, as {name}:{example}.")
        sizes = (1,) * axes
    return Target(name, sizes)
