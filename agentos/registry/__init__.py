"""The git-backed store of everything that may evolve."""

import _ssl  # the module ssl takes five times as long, and short commands come here, too
import os


def _import_pygit2_without_certificates() -> None:
    """On a machine that has none, as a bare container, pygit2 refuses to be imported.

    They are for servers, which are spoken to by the program git alone.
    """
    file_variable, file, folder_variable, folder = _ssl.get_default_verify_paths()
    named = os.environ.get(folder_variable)
    if os.path.isfile(os.environ.get(file_variable, file)) or os.path.isdir(named or folder):
        return
    os.environ[folder_variable] = os.path.dirname(__file__)  # any folder will do
    try:
        import pygit2  # noqa: F401
    finally:
        del os.environ[folder_variable]
        if named is not None:
            os.environ[folder_variable] = named


_import_pygit2_without_certificates()
