# SPDX-License-Identifier: MIT
"""The profiler's text, by neuron-profile."""
import os
import shutil
import subprocess

from . import _lib


def _tool():
    near = os.path.join(os.path.dirname(_lib.runtime_path()), '..', 'tools', 'neuron-profile')
    return near if os.path.exists(near) else shutil.which('neuron-profile')


def summary(path):
    """None when the tool is not installed."""
    tool = _tool()
    if tool is None:
        return None
    return subprocess.run([tool, 'view', '--color', 'never', '--width', '72', path], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
