"""Plug-ins by name: one rule for environments, agents and backends.

`wordle` in the package `resources_server.environments` is that module's class; `my_package.world:MyWorld` is that class. There is no
registry and nothing happens at import.
"""

import difflib
import importlib
import pkgutil
import traceback
from types import ModuleType
from typing import Any, TypeVar

from wire.errors import UsageError

T = TypeVar("T")


def load(package: str, name: str, base: type[T]) -> type[T]:
    """The class that `name` stands for.

    Args:
        package: Where short names live, such as `resources_server.environments`.
        name: A short name (`wordle`), or `module.path:Class` for anything on the Python path.
        base: What the class must derive from.

    Raises:
        UsageError: there is no such module or class; the message lists what exists and the nearest name.
    """
    module_name, _, class_name = name.partition(":")
    if not class_name and "." not in module_name:
        if module_name not in names(package):
            raise UsageError(f"no {_noun(package)} is called {name!r}{nearest(name, names(package))}")
        module_name = f"{package}.{module_name}"
    module = _import(module_name, name, package)
    if class_name:
        return _class(module, class_name, base, name)
    found: list[type[T]] = [each for each in vars(module).values() if _defined_there(each, module, base)]
    if len(found) != 1:
        have = ", ".join(sorted(each.__name__ for each in found)) or "none"
        raise UsageError(
            f"{_noun(package)} {name!r}: module {module_name} should define one {base.__name__} (it has: {have}); "
            f"write {module_name}:ClassName"
        )
    return found[0]


def names(package: str) -> list[str]:
    """The short names in a plug-in package, sorted."""
    return sorted(
        each.name for each in pkgutil.iter_modules(importlib.import_module(package).__path__) if each.name[0] != "_"
    )


def short_name(name: str) -> str:
    """`wordle` of `wordle`, `MyWorld` of `my_package.world:MyWorld`."""
    return name.rpartition(":")[2].rpartition(".")[2]


def nearest(name: str, known: list[str]) -> str:
    """` (did you mean 'x'? have: …)`, for the end of a message."""
    close = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f" ({hint}have: {', '.join(known)})"


def _import(module_name: str, name: str, package: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise UsageError(
                f"{_noun(package)} {name!r}: there is no module {error.name!r} on the Python path"
            ) from error
        raise UsageError(
            f"{_noun(package)} {name!r} needs the package {error.name!r}, which is not installed (pip install it)"
        ) from error
    except (Exception, SystemExit) as error:  # a module of the author's may raise anything, or try to leave
        where = traceback.extract_tb(error.__traceback__)[-1]
        raise UsageError(
            f"{_noun(package)} {name!r} cannot be imported: {type(error).__name__}: {error} ({where.filename}:{where.lineno})"
        ) from error


def _class(module: ModuleType, class_name: str, base: type[T], name: str) -> type[T]:
    found: Any = getattr(module, class_name, None)
    if not isinstance(found, type):
        classes = sorted(key for key, value in vars(module).items() if isinstance(value, type))
        raise UsageError(
            f"{name!r}: module {module.__name__} has no class {class_name!r}{nearest(class_name, classes)}"
        )
    if not issubclass(found, base):
        raise UsageError(f"{name!r} is no {base.__name__}: derive {class_name} from it")
    return found


def _defined_there(value: Any, module: ModuleType, base: type) -> bool:
    if not (isinstance(value, type) and issubclass(value, base) and value is not base):
        return False
    # A package's class may be written in one of its modules; a generic alias made by pydantic has brackets in its name.
    return (value.__module__ + ".").startswith(module.__name__ + ".") and "[" not in value.__name__


def _noun(package: str) -> str:
    return package.rpartition(".")[2].removesuffix("s")
