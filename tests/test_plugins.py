"""Backends of plugins, as far as they can be tried without a device; with one: tests/gpu."""

import importlib.metadata
import importlib.util
import types

import pytest

import olympus
from olympus._src.base import config
from olympus._src.devices import devices
from olympus.extend import backend

plugins = importlib.import_module("olympus._src.base.lib.plugins")


def test_an_installed_plugin_without_a_device_gives_way_to_the_cpu(monkeypatch):
    def fail():
        raise RuntimeError("No visible GPU devices.")

    monkeypatch.setattr(devices, "_present", lambda plugin: plugin == "cuda")
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
    monkeypatch.setattr(plugins, "make_plugin_client", lambda *args: made.append(args))
    devices._make_gpu_client()
    with config.cuda_visible_devices("1,3"), config.pjrt_client_create_options("a:1;b:x"):
        devices._make_gpu_client()
        devices._make_tpu_client()
    alone = {"node_id": 0, "num_nodes": 1}
    assert made == [("cuda", alone, None),
                    ("cuda", {**alone, "a": "1", "b": "x", "visible_devices": [1, 3]}, None),
                    # libtpu refuses options that it does not know, such as its place in a job.
                    ("tpu", {"a": "1", "b": "x"}, None)]
    with config.pjrt_client_create_options("a"), pytest.raises(ValueError, match="'name:value' is"):
        devices.given_options()


def test_the_default_platform_is_the_accelerator_of_the_machine(monkeypatch):
    for present, name in ((("tpu", "cuda"), "tpu"), (("cuda",), "gpu"), ((), "cpu")):
        monkeypatch.setattr(devices, "_present", present.__contains__)
        monkeypatch.setattr(devices, "_failed", [])
        assert devices.default_platform() == name
        with config.platforms("cpu"):
            assert devices.default_platform() == "cpu"
    # Wheels alone, with which programs are compiled for other machines, start nothing.
    monkeypatch.undo()
    devices._present.cache_clear()
    monkeypatch.setattr(plugins, "installed", lambda plugin: True)
    monkeypatch.setattr(plugins, "attached", lambda plugin: False)
    assert devices.default_platform() == "cpu"
    devices._present.cache_clear()


@pytest.fixture
def plugin_names(monkeypatch):
    """Plugins may be registered by any name, and are forgotten afterwards."""
    monkeypatch.setattr(devices, "_MAKERS", dict(devices._MAKERS))
    monkeypatch.setattr(plugins, "_loaders", dict(plugins._loaders))


def test_plugins_of_others_are_registered_by_name(plugin_names, monkeypatch, tmp_path):
    no_plugin = tmp_path / "plugin.so"
    no_plugin.write_text("no library")
    made = []
    backend.register_pjrt_plugin("mine", library_path=str(no_plugin), options=lambda: {"a": 1})
    backend.register_pjrt_plugin("absent", library_path=str(tmp_path / "absent.so"))
    backend.register_pjrt_plugin("own", library_path=str(no_plugin), factory=lambda: made.append(1))
    with pytest.raises(RuntimeError, match=r"load_plugin: /.*absent.so is given as the library"):
        olympus.devices("absent")
    with pytest.raises(RuntimeError, match=r"load_plugin: /.*plugin.so is no PJRT plugin that jax"):
        olympus.devices("mine")
    devices._MAKERS["own"]()
    assert made == [1]
    monkeypatch.setattr(plugins, "make_plugin_client", lambda *args: made.append(args))
    with config.pjrt_client_create_options("b:2"):
        devices._MAKERS["mine"]()
    assert made[1] == ("mine", {"a": 1, "b": "2"}, None)
    for given, wrong in (({"library_path": "x", "c_api": object()}, "one of them is required"),
                         ({}, "one of them is required"),
                         ({"library_path": "x", "options": {}, "factory": list}, "has its own opt"),
                         ({"library_path": "x"}, "'cpu' given, which is there already")):
        with pytest.raises(ValueError, match=wrong):
            backend.register_pjrt_plugin("cpu", **given)
    for given in ({"name": 3}, {"library_path": b"x"}, {"c_api": 3}, {"factory": 3}):
        with pytest.raises(TypeError, match=f"{next(iter(given))}=b?'?[3x]'? given; a .* is requ"):
            backend.register_pjrt_plugin(**{
                "name": "wrong", **({} if "c_api" in given else {"library_path": "x"}), **given})


def test_plugins_of_others_are_found_by_option_variable_and_entry_point(
        plugin_names, monkeypatch, tmp_path):
    package = tmp_path / "some_plugin"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('it may import jax')")
    (package / "a.so").write_bytes(b"another library")
    (package / "z.so").write_bytes(b"... GetPjrtApi ...")
    empty = tmp_path / "no_plugin"
    empty.mkdir()
    (empty / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    points = [importlib.metadata.EntryPoint(name, module, "jax_plugins")
              for name, module in (("one", "some_plugin"), ("two", "no_plugin"))]
    monkeypatch.setattr(devices, "metadata", types.SimpleNamespace(
        entry_points=lambda group: points if group == "jax_plugins" else []))
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "three:/tmp/no/three.so")
    with config.pjrt_plugins("four:/tmp/no/four.so,five:/tmp/no/five.so"):
        for name in ("three", "four", "five"):
            with pytest.raises(RuntimeError, match=f"/tmp/no/{name}.so is given as the library"):
                olympus.devices(name)
        with pytest.raises(RuntimeError, match=r"some_plugin/z.so is no PJRT plugin"):
            olympus.devices("one")
        with pytest.raises(RuntimeError, match="no_plugin calls itself a PJRT plugin, and no lib"):
            olympus.devices("two")
        with pytest.raises(RuntimeError, match="are cpu, cuda, five, four, gpu, one, three, t"):
            olympus.devices("six")
    with config.pjrt_plugins("four"), pytest.raises(ValueError, match="'four' given; 'name:path'"):
        olympus.devices("six")


def test_wheels_of_other_versions_than_jaxlib_are_refused(monkeypatch, tmp_path):
    (tmp_path / "xla_cuda_plugin.so").touch()
    spec = types.SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    versions = types.SimpleNamespace(
        version=lambda name: "0.0.1", PackageNotFoundError=importlib.metadata.PackageNotFoundError)
    monkeypatch.setattr(plugins, "metadata", versions)
    with pytest.raises(RuntimeError, match="found jax-cuda13-pjrt 0.0.1 beside jaxlib .*; one ver"):
        plugins._find_cuda_plugin()
    versions.version = lambda name: plugins.jaxlib_version
    assert plugins._find_cuda_plugin() == ("13", tmp_path / "xla_cuda_plugin.so")
