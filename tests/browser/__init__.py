"""The Lab in a real JupyterLab and a real Chromium."""
