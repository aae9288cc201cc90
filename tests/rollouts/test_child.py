"""What a server's process is given of our environment."""

from pathlib import Path

import pytest

from rollouts import child
from rollouts.child import LARGE_PAGES, environment


@pytest.fixture(autouse=True)
def kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with large pages, nothing set by its user; the kernel's file about them."""
    told = tmp_path / "enabled"
    told.write_text("always [madvise] never\n")
    monkeypatch.setattr(child, "LARGE_PAGES_KERNEL", told)
    monkeypatch.setattr("platform.libc_ver", lambda: ("glibc", "2.36"))
    for name in LARGE_PAGES:
        monkeypatch.delenv(name, raising=False)
    return told


def given(room: str) -> dict[str, str]:
    return {name: value for name, value in environment(room).items() if name in LARGE_PAGES}


def test_the_model_interface_has_large_pages_and_nobody_else() -> None:
    """What holds little only pays for them; a verifier's process would inherit them."""
    assert given("model_interface") == LARGE_PAGES
    assert given("resources_server") == given("agent_server") == {}


@pytest.mark.parametrize(("name", "value"), [("PYTHONMALLOC", "debug"), ("GLIBC_TUNABLES", "glibc.malloc.check=3")])
def test_who_has_chosen_how_memory_is_taken_keeps_it(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole: one half of ours is worth nothing without the other."""
    monkeypatch.setenv(name, value)
    assert given("model_interface") == {name: value}


@pytest.mark.parametrize("libc", [("glibc", "2.31"), ("", "")])
def test_a_libc_that_does_not_ask_for_large_pages_is_left_alone(
    libc: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its malloc alone would only be slower."""
    monkeypatch.setattr("platform.libc_ver", lambda: libc)
    assert given("model_interface") == {}


def test_a_kernel_without_large_pages_is_left_alone(kernel: Path) -> None:
    """Switched off, or never heard of."""
    kernel.write_text("always madvise [never]\n")
    assert given("model_interface") == {}
    kernel.unlink()
    assert given("model_interface") == {}
