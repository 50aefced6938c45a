"""Addresses of forges are those of the project and of cited sources."""

from __future__ import annotations

import re

import pytest
from project_files import tree

from gradlab.formatting import REPOSITORY

ADDRESS = re.compile(
    r"(?:(?:github|gitlab)\.com[/:]|(?:bitbucket|codeberg)\.org[/:]|(?:huggingface\.co|hf\.co|git\.sr\.ht)/"
    r"|(?:raw|gist)\.githubusercontent\.com/|api\.github\.com/repos/|/v2/(?:gh|gl)/|/github/|/gitlab/)"
    r"(?:blob/|repos/|spaces/|datasets/)?([\w~-][\w.-]*)/([\w.-]*\w)",
    re.IGNORECASE,
)
PLACEHOLDERS = {"YOU", "OWNER"}
# Owners of code or texts cited in notebooks, in the doctor's corpus and beside numbers; and of two tools.
CITED = """
    Haian-Jin Lightning-AI NVIDIA-NeMo Theano Wangyixinxin Zheng-Chong ageron ai-bot-pro apple
    astral-sh baidu-baige benfred bottlerocket-os bytetriper cloneofsimo crate-ci fartashf huggingface ivadomed
    jupyterhub karpathy linkedin meta-pytorch milesial mlfoundations modelscope mosaicml murong-xu
    optimum-benchmark pai4451 pytorch radixark rasbt tk-rusch torch ultralytics verl-project vllm-project
"""


def foreign(text: str) -> list[str]:
    """Return the addresses that are neither the project's nor a cited source's."""
    ours = REPOSITORY.removeprefix("https://github.com/")
    return [
        match[0]
        for match in ADDRESS.finditer(text.replace("docs.github.com", "").replace("huggingface.co/docs/", ""))
        if match[1] not in PLACEHOLDERS.union(CITED.split())
        and (not ours or f"{match[1]}/{match[2].removesuffix('.git')}" != ours)
    ]


@pytest.mark.slow
def test_every_address_is_ours_or_a_cited_source_s() -> None:
    likely = {name: text for name, text in tree() if re.search("(?i)git|codeberg|bitbucket|huggingface|hf.co", text)}
    assert {name: addresses for name, text in likely.items() if (addresses := foreign(text))} == {}
    assert {match[1] for text in likely.values() for match in ADDRESS.finditer(text)} >= set(CITED.split())


@pytest.mark.parametrize(
    "address",
    [
        "https://github.com/{}/{}",
        "git+https://github.com/{}/{}@v0.2.0",
        "git@github.com:{}/{}.git",
        "https://mybinder.org/v2/gh/{}/{}/main",
        "https://colab.research.google.com/github/{}/{}/blob/main/x.ipynb",
        "https://gitlab.com/{}/{}",
        "https://codeberg.org/{}/{}",
        "https://huggingface.co/spaces/{}/{}",
    ],
)
def test_such_an_address_is_found(address: str) -> None:
    name = "grad" + "lab"  # an unrelated organisation has this name
    assert foreign(f"see {address.format(name, name)}.")
    assert not foreign(f"see {address.format('YOU', 'NAME')}.")
