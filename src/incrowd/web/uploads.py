"""Files a person drops in: straight into a private folder, within limits, under harmless names, gone afterwards."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from incrowd.errors import IncrowdError, InputError, UnreadableSource, on_the_command_line

FOLDER = "uploads"
MOST_HEADER_BYTES = 8192
MOST_FIELD_BYTES = 4096
MOST_NAME = 120
FORM_REMEDY = (
    "In the form you can say what the files hold, whose they are, which community they are from, which column is what "
    "and how dates are meant. A format can be named when importing on the command line."
)
IMPORT_FORM = dict.fromkeys(("user", "community", "columns", "kind", "dates", "format", "yes"), FORM_REMEDY)
"""What to do at the form that fills a crowd where a command would take an option."""
_FILL = "The form named 'Fill a crowd' lets you say more about such files."
OWN_FORM = {
    "user": "Write it into the field for your account.",
    **dict.fromkeys(("community", "columns", "kind", "dates"), _FILL),
}
"""The same at the forms for one's own export, which ask for nothing but a name."""
NO_OPTIONS: dict[str, str] = {}
_OPTION = re.compile(r"(?<!\S)[(']?--([a-z][a-z-]*)")


@dataclass
class Upload:
    """What one form brought: its fields, and its files in a folder of their own."""

    folder: Path
    fields: dict[str, str] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)

    def discard(self) -> None:
        """Delete the files; the crowd has what it needs."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def for_the_form(self, message: str, form: Mapping[str, str]) -> str:
        """Say it to somebody at a form: files go by their names alone, and its fields take the place of options."""
        sentences = re.split(r"(?<=[.!?]) +", message.replace(f"{self.folder}/", ""))
        kept = [one for one in sentences if not _OPTION.search(one)]
        remedies = [form[option] for one in sentences for option in _OPTION.findall(one) if option in form]
        return " ".join([*kept, *dict.fromkeys(remedies)])

    def at_the_form(self, error: IncrowdError, form: Mapping[str, str]) -> IncrowdError:
        """Return an error that says the same to somebody at a form.

        It is of a plain class: others are made of more than a message (a question has an option and choices).
        """
        with on_the_command_line():  # so that options are told from words
            message = self.for_the_form(str(error), form)
        return InputError(message) if isinstance(error, InputError) else IncrowdError(message)


def private_folder(crowd: Path) -> Path:
    """Make a new folder (mode 0700) inside the crowd's, which is private as well; its name says whose it is."""
    parent = crowd / FOLDER
    parent.mkdir(mode=0o700, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=parent))


def discard_leftovers(crowd: Path) -> None:
    """Delete what servers that are no longer running left behind."""
    for folder in (crowd / FOLDER).glob("*-*"):
        if not _runs(int(folder.name.partition("-")[0])):
            shutil.rmtree(folder, ignore_errors=True)


def _runs(process: int) -> bool:
    if os.name == "nt":
        return process == os.getpid()  # asking as below would stop the process there
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def receive(request: Request, folder: Path, most_files: int, form_key: str) -> Upload:
    """Write a form's files as they arrive. The form key comes first; without it nothing is written."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary:
        raise InputError("upload: expected a form with files, got something else")
    upload = Upload(folder)
    parts = _Parts(upload, most_files, form_key)
    parser = MultipartParser(boundary, parts.callbacks())  # type: ignore[arg-type]  # a plain dict of callables
    try:
        async for chunk in request.stream():
            parser.write(chunk)
        parser.finalize()
    except FormParserError:
        raise InputError("upload: expected a form as browsers send it, got one that cannot be read") from None
    finally:
        parts.close()
    if not parts.complete:
        raise UnreadableSource("upload: expected whole files, but the connection ended early. Try again.")
    return upload


class _Parts:
    """Takes a form apart as its bytes arrive."""

    def __init__(self, upload: Upload, most_files: int, form_key: str) -> None:
        self.upload, self.most_files, self.form_key = upload, most_files, form_key
        self.complete = False
        self._header, self._headers = (b"", b""), {}  # type: tuple[bytes, bytes], dict[bytes, bytes]
        self._file: BinaryIO | None = None
        self._name, self._value = "", bytearray()

    def callbacks(self) -> dict[str, object]:
        """Return what the parser calls."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._header_name,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._open,
            "on_part_data": self._data,
            "on_part_end": self._end,
            "on_end": self._finished,
        }

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin(self) -> None:
        self._headers, self._header = {}, (b"", b"")
        self._value = bytearray()

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        if len(self._header[0]) + end - start > MOST_HEADER_BYTES:
            raise InputError("upload: expected a form as browsers send it, got one that cannot be read")
        self._header = (self._header[0] + data[start:end], self._header[1])

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        if len(self._header[1]) + end - start > MOST_HEADER_BYTES:
            raise InputError(
                f"upload: expected a file name of at most {MOST_HEADER_BYTES:,} bytes, got a longer one"
            )
        self._header = (self._header[0], self._header[1] + data[start:end])

    def _header_end(self) -> None:
        self._headers[self._header[0].lower()] = self._header[1]
        self._header = (b"", b"")

    def _open(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        filename = options.get(b"filename")
        if filename:
            self._open_file(filename.decode("utf-8", "replace"))

    def _open_file(self, filename: str) -> None:
        if self.upload.fields.get("form_key") != self.form_key:
            raise InputError("upload: this form was not made by this server. Reload the page and try again.")
        if len(self.upload.files) >= self.most_files:
            raise InputError(
                f"upload: expected at most {self.most_files} files at a time. Send fewer at once."
            )
        name = harmless_name(filename, len(self.upload.files))
        path = self.upload.folder / name
        if path.exists():
            path = path.with_name(f"{len(self.upload.files)}-{name}")
        self._file = path.open("xb")
        self.upload.files.append(path)

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(data[start:end])
            return
        self._value += data[start:end]
        if len(self._value) > MOST_FIELD_BYTES:
            raise InputError(f"upload: a field of the form is longer than {MOST_FIELD_BYTES:,} bytes")

    def _end(self) -> None:
        if self._file is not None:
            self.close()
        else:
            self.upload.fields[self._name] = self._value.decode("utf-8", "replace").strip()

    def _finished(self) -> None:
        self.complete = True


def harmless_name(name: str, number: int) -> str:
    """Return a file name that stays in its folder and keeps its endings, by which formats are told.

    >>> harmless_name("../../etc/passwd", 0)
    'passwd'
    >>> harmless_name("..", 3)
    'file-3'
    """
    last = re.split(r"[/\\]", name)[-1]
    kept = re.sub(r"[^\w.() -]", "_", last).strip(". ")
    # Systems count bytes, and letters may have four.
    kept = kept.encode("utf-8", "replace")[-MOST_NAME:].decode("utf-8", "ignore").lstrip(".- ")
    return kept or f"file-{number}"
