"""The web pages of gradlab, written by ``gradlab site``, which calls ``build.build_site``."""
