"""Profiles of the activities of host and devices, and of the memory in use: names only."""

from ._src.runtime.profiler import (
    ProfileData, ProfileEvent, ProfileLine, ProfileOptions, ProfilePlane, ProfileSession,
    StepTraceAnnotation, TraceAnnotation, annotate_function, device_memory_profile,
    export_profile_data, register_subprocess, save_device_memory_profile, start_server, start_trace,
    stop_server, stop_trace, trace,
)
from ._src.base.util import publish as _publish

__all__ = [
    "ProfileData", "ProfileEvent", "ProfileLine", "ProfileOptions", "ProfilePlane",
    "ProfileSession", "StepTraceAnnotation", "TraceAnnotation", "annotate_function",
    "device_memory_profile", "export_profile_data", "register_subprocess",
    "save_device_memory_profile", "start_server", "start_trace", "stop_server", "stop_trace",
    "trace",
]

_publish(__name__)
