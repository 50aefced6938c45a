"""Run a script in several processes on this machine, by ourselves or by PyTorch's own starter."""

from .launch import LaunchResult as LaunchResult
from .launch import launch as launch
from .launch import torchrun as torchrun
from .launch import work_in_temporary_folder as work_in_temporary_folder
from .workers import prepare as prepare
