"""A zip of one JSON document and safetensors: what models and checkpoints are stored in.

Nothing that is read is ever run. No entry is compressed, so that none can be larger than the
file that holds it.
"""

import json
import math
import os
import secrets
import struct
import zipfile
from contextlib import contextmanager

import numpy as np
import safetensors
import safetensors.torch
import torch

from .exceptions import FileFormatError

# Raised by one whenever an older version could no longer read the files.
FORMAT_VERSION = 1

_TENSORS = "weights.safetensors"
_KINDS = ("model", "checkpoint")
# What decoding a document raises when something in it is not as it was written.
_DECODING_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
)
_ZIP_ERRORS = (*_DECODING_ERRORS, EOFError, OSError, struct.error, zipfile.BadZipFile)


class NotStorableError(TypeError):
    """A value is neither plain data nor anything else that a file can hold."""


def write_archive(path, kind, document, tensors):
    """Write `document` and `tensors` to `path`; a file that is there is replaced at the end.

    Parameters
    ----------
    path : str or path-like
        Where to write. Whatever goes wrong, an older file stays whole.
    kind : {"model", "checkpoint"}
        What the file is; :func:`read_archive` compares it.
    document : dict
        Anything that JSON can hold.
    tensors : dict of str to Tensor
        On the CPU, contiguous, and sharing no memory.
    """
    header = {"format": f"skdeepclust {kind}", "format_version": FORMAT_VERSION}
    content = json.dumps({**header, **document}, allow_nan=False, indent=1)
    with _replacing(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        # A ZipInfo of its own has a constant date: the same model makes the same bytes.
        archive.writestr(zipfile.ZipInfo(f"{kind}.json"), content)
        archive.writestr(zipfile.ZipInfo(_TENSORS), safetensors.torch.save(tensors))


def read_archive(path, kind):
    """Return document and tensors of the file at `path`.

    Raises
    ------
    FileFormatError
        When the file is something else, damaged, or of a newer format.
    """
    with open(path, "rb") as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                entries = _entries(archive, os.fstat(stream.fileno()).st_size)
                _check_kind(path, kind, entries)
                content = archive.read(entries[f"{kind}.json"])
                document = json.loads(content, parse_constant=_refuse_constant)
                _check_header(path, kind, document)
                if len(entries) != 2:
                    raise ValueError(f"it holds the further entries {sorted(entries)[:5]}")
                tensors = safetensors.torch.load(archive.read(entries[_TENSORS]))
        except FileFormatError:
            raise
        except (*_ZIP_ERRORS, safetensors.SafetensorError) as error:
            raise FileFormatError(
                f"{os.fspath(path)!r} is not a {kind} of skdeepclust, or it is damaged or cut "
                f"short: {error}"
            ) from error
    return document, tensors


@contextmanager
def decoding(path, what):
    """Turn whatever an altered document leads to inside the block into FileFormatError."""
    try:
        yield
    except FileFormatError:
        raise
    except _DECODING_ERRORS as error:
        detail = f"{type(error).__name__}: {error}"
        raise FileFormatError(
            f"{os.fspath(path)!r} was altered or is damaged; its {what} cannot be used: {detail}"
        ) from error


class Packer:
    """Turns values into what JSON can hold; arrays and tensors are put aside by name.

    Attributes
    ----------
    tensors : dict of str to Tensor
        What was put aside.
    """

    def __init__(self):
        self.tensors = {}

    def pack(self, value, name):
        """Return `value` as JSON can hold it; `name` tells where in the file it stands."""
        if value is None or isinstance(value, (bool, str)) or type(value) is int:
            return value
        if isinstance(value, np.generic):
            return self._scalar(value, name)
        if type(value) is float:
            return value if math.isfinite(value) else {"$": "float", "value": repr(value)}
        if isinstance(value, (list, tuple)):
            items = [self.pack(item, f"{name}/{i}") for i, item in enumerate(value)]
            return items if isinstance(value, list) else {"$": "tuple", "items": items}
        if type(value) is dict:
            return self._dict(value, name)
        if isinstance(value, torch.device):
            return {"$": "device", "value": str(value)}
        if isinstance(value, torch.Tensor):
            return {"$": "tensor", "name": self.put(name, value)}
        if isinstance(value, np.ndarray):
            return self._array(value, name)
        return self.pack_object(value, name)

    def pack_object(self, value, name):
        """Pack what is not plain data; subclasses know more kinds."""
        raise NotStorableError(f"a file cannot hold a {type(value).__name__} ({name})")

    def put(self, name, tensor):
        """Put a copy of `tensor` aside; return its name."""
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise NotStorableError(f"a file can hold dense tensors only ({name})")
        self.tensors[name] = tensor.detach().cpu().contiguous().clone()
        return name

    def _scalar(self, value, name):
        if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
            raise NotStorableError(f"a file cannot hold the type {value.dtype} ({name})")
        return {"$": "scalar", "dtype": value.dtype.name, "value": self.pack(value.item(), name)}

    def _dict(self, value, name):
        if not all(type(key) is str and not key.startswith("$") for key in value):
            raise NotStorableError(f"a file can hold dicts with names as keys only ({name})")
        return {key: self.pack(item, f"{name}/{key}") for key, item in value.items()}

    def _array(self, value, name):
        if value.ndim == 1 and value.dtype.kind in "OU":
            if not all(isinstance(item, str) for item in value):
                raise NotStorableError(f"a file cannot hold an array of objects ({name})")
            items = [str(item) for item in value]
            return {"$": "strings", "object": value.dtype.kind == "O", "items": items}
        if value.dtype.kind not in "biufc":
            raise NotStorableError(f"a file cannot hold an array of type {value.dtype} ({name})")
        native = np.array(value, dtype=value.dtype.newbyteorder("="), order="C")
        try:
            tensor = torch.from_numpy(native)
        except TypeError as error:
            raise NotStorableError(f"{error} ({name})") from error
        return {"$": "array", "name": self.put(name, tensor)}


class Unpacker:
    """The reverse of :class:`Packer`.

    Parameters
    ----------
    tensors : dict of str to Tensor
        Those of the file.

    Attributes
    ----------
    used : set of str
        The names of those that were asked for.
    """

    def __init__(self, tensors):
        self._tensors = tensors
        self.used = set()

    def unpack(self, value):
        """Return the value that was packed."""
        if isinstance(value, list):
            return [self.unpack(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$" not in value:
            return {key: self.unpack(item) for key, item in value.items()}
        kind = value["$"]
        if kind == "float":
            return float(value["value"])
        if kind == "tuple":
            return tuple(self.unpack(item) for item in value["items"])
        if kind == "scalar":
            return _scalar(value["dtype"], self.unpack(value["value"]))
        if kind == "device":
            return torch.device(value["value"])
        if kind == "tensor":
            return self._take(value["name"])
        if kind == "array":
            return self._take(value["name"]).numpy()
        if kind == "strings":
            strings = [_string(item) for item in value["items"]]
            return np.array(strings, dtype=object if value["object"] else str)
        return self.unpack_object(kind, value)

    def unpack_object(self, kind, value):
        """Unpack what is not plain data; subclasses know more kinds."""
        raise ValueError(f"unknown kind of value {kind!r}")

    def _take(self, name):
        self.used.add(name)
        # A copy: views into a file have any alignment, and rounding may depend on it.
        return self._tensors[name].clone()


@contextmanager
def _replacing(path):
    """Yield a stream to a new file beside `path` that takes its place when all went well."""
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder):
    """Make the new name last through a power cut, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _entries(archive, file_size):
    """Return the entries by name after checking that the file can hold what they declare."""
    entries = {}
    for entry in archive.infolist():
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 0x1:
            raise ValueError(f"the entry {entry.filename!r} is compressed or encrypted")
        if entry.file_size != entry.compress_size or entry.file_size > file_size:
            raise ValueError(f"the entry {entry.filename!r} declares a size that cannot be")
        if entry.filename in entries:
            raise ValueError(f"the entry {entry.filename!r} is there twice")
        entries[entry.filename] = entry
    return entries


def _check_kind(path, kind, entries):
    if f"{kind}.json" in entries:
        return
    for other in _KINDS:
        if other != kind and f"{other}.json" in entries:
            raise FileFormatError(f"{os.fspath(path)!r} is a {other} of skdeepclust, not a {kind}.")
    raise FileFormatError(
        f"{os.fspath(path)!r} is not a {kind} of skdeepclust: it holds no {kind}.json, but "
        f"{sorted(entries)[:5]}."
    )


def _check_header(path, kind, document):
    if document["format"] != f"skdeepclust {kind}":
        raise ValueError(f"its format is {document['format']!r}")
    version = document["format_version"]
    if type(version) is not int or version < 1:
        raise ValueError(f"its format_version is {version!r}")
    if version > FORMAT_VERSION:
        raise FileFormatError(
            f"{os.fspath(path)!r} was written by a newer skdeepclust, in format version {version}; "
            f"this one reads up to version {FORMAT_VERSION}. Upgrade skdeepclust to read it."
        )


def _refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def _scalar(dtype, value):
    dtype = np.dtype(dtype)
    if dtype.kind not in "biuf":
        raise ValueError(f"{dtype} is not the type of a number")
    return dtype.type(value)


def _string(item):
    if not isinstance(item, str):
        raise ValueError(f"{item!r} stands among strings")
    return item
