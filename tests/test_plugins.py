"""Backends of plugins, as far as they can be tried without a device; with one: tests/gpu."""

import importlib.metadata
import importlib.util
import types

import pytest

import olympus
from olympus._src.base import config
from olympus._src.base.lib import clients
from olympus._src.devices import devices


def test_an_installed_plugin_without_a_device_gives_way_to_the_cpu(monkeypatch):
    def fail():
        raise RuntimeError("No visible GPU devices.")

    monkeypatch.setattr(devices, "_gpu_plugin_installed", lambda: True)
    monkeypatch.setattr(devices, "_failed", [])
    monkeypatch.setitem(devices._MAKERS, "gpu", fail)
    with config.platforms("gpu"), pytest.raises(RuntimeError, match="No visible GPU"):
        olympus.devices()       # the user asked for it
    with pytest.raises(RuntimeError, match="No visible GPU"):
        olympus.devices("gpu")
    with pytest.warns(RuntimeWarning, match="the gpu plugin is installed, but has no device"):
        assert olympus.devices()[0].platform == "cpu"
    assert olympus.devices()[0].platform == "cpu"       # told once


def test_options_of_plugins(monkeypatch):
    made = []
    monkeypatch.setattr(devices.lib, "make_gpu_client", lambda *args: made.append(args))
    devices._make_gpu_client()
    with config.cuda_visible_devices("1,3"), config.pjrt_client_create_options("a:1;b:x"):
        devices._make_gpu_client()
    alone = {"node_id": 0, "num_nodes": 1}
    assert made == [(alone, None),
                    ({**alone, "a": "1", "b": "x", "visible_devices": [1, 3]}, None)]
    with config.pjrt_client_create_options("a"), pytest.raises(ValueError, match="'name:value' is"):
        devices.plugin_options()


def test_wheels_of_other_versions_than_jaxlib_are_refused(monkeypatch, tmp_path):
    (tmp_path / "xla_cuda_plugin.so").touch()
    spec = types.SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    versions = types.SimpleNamespace(
        version=lambda name: "0.0.1", PackageNotFoundError=importlib.metadata.PackageNotFoundError)
    monkeypatch.setattr(clients, "_metadata", versions)
    with pytest.raises(RuntimeError, match="found jax-cuda13-pjrt 0.0.1 beside jaxlib .*; one ver"):
        clients._find_cuda_plugin()
    versions.version = lambda name: clients.jaxlib_version
    assert clients._find_cuda_plugin() == ("13", tmp_path / "xla_cuda_plugin.so")
