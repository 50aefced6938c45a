"""What makes the web pages of gradlab: the command ``gradlab site`` calls ``build.build_site``."""
