"""XLA's profiler: sessions, annotations, a server, and the content of a profile.

Loaded on first use: a process that is not profiled does without.
"""
# jaxlib has no stubs of its extension modules.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxlib import _profile_data, _profiler

TraceMe: Any = _profiler.TraceMe
ProfileOptions: Any = _profiler.ProfileOptions
ProfileData: Any = _profile_data.ProfileData
ProfileEvent: Any = _profile_data.ProfileEvent
ProfileLine: Any = _profile_data.ProfileLine
ProfilePlane: Any = _profile_data.ProfilePlane
Session: Any = _profiler.ProfilerSession
start_server: Callable[[int], Any] = _profiler.start_server
register_subprocess: Callable[[int, int], Callable[[], None]] = _profiler.register_subprocess
profiled_instructions: Callable[[str], bytes] = _profiler.get_profiled_instructions_proto
serialized_xspace: Callable[[str], bytes] = ProfileData.text_proto_to_serialized_xspace
