"""What makes the web pages of gradlab: the command ``gradlab site`` calls ``build_site``."""

from .build import SiteAddress, build_site

__all__ = ["SiteAddress", "build_site"]
