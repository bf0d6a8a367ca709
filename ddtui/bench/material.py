"""Natural text to grow contexts with: real code and real prose that every Python carries.

Code is the standard library's source, prose is the language reference of `pydoc`. Both are read from the
Python that runs ddtui, so prompts are the same from run to run on one machine; their hash is part of a
point's identity.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CODE = (  # noqa: SIM905 (a list would take a page)
    "argparse ast asyncio/base_events asyncio/streams asyncio/tasks bdb calendar cmd codecs configparser "
    "contextlib copy csv dataclasses difflib dis doctest email/header email/message "
    "email/_header_value_parser enum fileinput fractions ftplib functools gettext getopt glob graphlib "
    "gzip heapq html/parser http/client http/cookiejar http/cookies http/server imaplib "
    "importlib/metadata/__init__ inspect ipaddress json/decoder json/encoder json/scanner linecache "
    "locale logging/__init__ logging/config logging/handlers mailbox mimetypes multiprocessing/managers "
    "multiprocessing/pool netrc optparse pdb pickle pickletools pkgutil platform plistlib poplib "
    "posixpath pprint profile pstats pyclbr pydoc queue random reprlib sched selectors shelve shlex "
    "shutil smtplib socket socketserver sqlite3/dump statistics string subprocess symtable tabnanny "
    "tarfile tempfile textwrap threading timeit tokenize trace traceback types typing unittest/case "
    "unittest/loader unittest/mock unittest/suite urllib/parse urllib/request urllib/robotparser uuid "
    "warnings wave weakref webbrowser wsgiref/handlers xml/dom/expatbuilder xml/dom/minidom "
    "xml/etree/ElementTree xml/sax/expatreader xmlrpc/client xmlrpc/server zipapp zipfile"
).split()


@dataclass(frozen=True, slots=True)
class Document:
    """A piece of material."""

    name: str
    text: str


@cache
def code() -> tuple[Document, ...]:
    """Modules of the standard library, each of 2,000 characters or more."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    found = []
    for name in CODE:
        for path in (folder / f"{name}.py", folder / name / "__init__.py"):
            if path.is_file():
                text = path.read_text("utf-8", "replace")
                if len(text) >= 2000:
                    found.append(Document(f"{name}.py", text))
                break
    return tuple(found)


@cache
def prose() -> tuple[Document, ...]:
    """Chapters of the Python language reference; docstrings where a Python comes without it."""
    topics: dict[str, str]
    try:
        topics = importlib.import_module("pydoc_data.topics").topics
    except ImportError:
        modules = [module for name, module in sorted(sys.modules.items()) if "." not in name]
        topics = {module.__name__: inspect.getdoc(module) or "" for module in modules}
    return tuple(Document(name, text) for name, text in sorted(topics.items()) if len(text) >= 1000)


def fingerprint(documents: tuple[Document, ...]) -> str:
    """A short hash of names and texts."""
    made = hashlib.sha256()
    for document in documents:
        made.update(f"{document.name}\0{document.text}\0".encode())
    return made.hexdigest()[:12]
