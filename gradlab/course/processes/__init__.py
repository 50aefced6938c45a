"""Tools that run a script in several processes on this machine."""

from .launch import LaunchResult as LaunchResult
from .launch import launch as launch
from .launch import work_in_temporary_folder as work_in_temporary_folder
from .workers import prepare as prepare
