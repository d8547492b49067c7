"""Object files: one cell in one safetensors file, whose header vouches for all of it.

The header's metadata name the key and the identity, and have a digest of every tensor; the seal is
a digest of the header itself, taken with zeros in the seal's place. So whoever knows the seal knows
every byte, and a header alone is enough to enter its object in a manifest again.
The format is written here because the safetensors library copies what it writes and neither
syncs a file nor reads into memory that is there already; a test reads each other's files.
Source: safetensors format, version 0.8.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Executor, wait
from dataclasses import asdict, dataclass
from functools import partial

import torch
from torch import Tensor

from fivestate.impl.tiers.digest import HEX_DIGITS, Vouched, digest
from fivestate.impl.tiers.files import Files
from fivestate.impl.tiers.tensors import DTYPES, NAMES, Tensors, chunks, memory, require_fit

FORMAT = 1
"""Version of folder and files; a reader refuses a greater one."""

READ_AHEAD_BYTES = 4 << 20
"""How far ahead of a chunk the disk is asked for more: several threads read one file, and the
system sees no order in that by itself."""

HEADER_LIMIT_BYTES = 1 << 24
_WORTH_A_THREAD_BYTES = 1 << 17
_ALIGNMENT_BYTES = 64
_LENGTH_BYTES = 8
_START = b'{"__metadata__":{"seal":"'
_NO_SEAL = b"0" * HEX_DIGITS


class Unreadable(Exception):  # noqa: N818 -- a finding about a file, which its store acts on
    """A file is not what its seal says."""


@dataclass(frozen=True, slots=True)
class Label:
    """What a header says of its object.

    Attributes:
        key: key of the object.
        sequence: number of the `Store.put` that wrote it.
        geometry, layout, weights: the identity it was written under.
    """

    key: str
    sequence: int
    geometry: str
    layout: str
    weights: int


@dataclass(frozen=True, slots=True)
class Part:
    """One tensor of a file: where its bytes are, and the digest of each chunk of them."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int
    digests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Header:
    """A header that has been read and agrees with its seal."""

    label: Label
    parts: tuple[Part, ...]
    chunk_bytes: int
    seal: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """An object ready to be written: the pieces of its file, in order, none empty."""

    pieces: list[memoryview]
    seal: str
    size_bytes: int


def encode(label: Label, given: Vouched) -> Encoded:
    """Return the file of an object.

    Args:
        label: what its header is to say.
        given: the object; it is not copied, so it must not change until written.

    Raises:
        ValueError: there are too many tensors for one header.
    """
    tensors = given.tensors
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    entries: dict[str, object] = {}
    begin = 0
    for name in names:  # wide elements first, so that each tensor is aligned as safetensors wants
        tensor = tensors[name]
        end = begin + tensor.nbytes
        kind = NAMES[tensor.dtype]
        entries[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [begin, end]}
        begin = end
    metadata = {"seal": _NO_SEAL.decode(), "format": str(FORMAT)}
    metadata |= {field: str(value) for field, value in asdict(label).items()}
    digests = json.dumps({name: given.digests[name] for name in names})
    metadata |= {"chunk_bytes": str(given.chunk_bytes), "digests": digests}
    text = json.dumps({"__metadata__": metadata, **entries}, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + _LENGTH_BYTES) % _ALIGNMENT_BYTES)
    if len(text) > HEADER_LIMIT_BYTES:
        raise ValueError(
            f"tensors: {len(names):,} need a header above {HEADER_LIMIT_BYTES:,} bytes"
        )
    unsealed = len(text).to_bytes(_LENGTH_BYTES, "little") + text
    seal = digest(unsealed)
    start = _LENGTH_BYTES + len(_START)
    sealed = unsealed[:start] + seal.encode() + unsealed[start + HEX_DIGITS :]
    data = [memory(tensors[name]) for name in names if tensors[name].nbytes]
    return Encoded([memoryview(sealed), *data], seal, len(sealed) + begin)


def read_header(files: Files, descriptor: int) -> Header:
    """Read the header of an open file and check its seal, and nothing of the tensors.

    Raises:
        Unreadable: it does not check, or the file is not as long as it says.
        OSError: the system cannot read it.
    """
    size = files.size_bytes(descriptor)
    prefix = _read(files, descriptor, 0, _LENGTH_BYTES)
    length = int.from_bytes(prefix, "little")
    if length > min(HEADER_LIMIT_BYTES, size - _LENGTH_BYTES):
        raise Unreadable(f"its header says it has {length:,} bytes")
    text = _read(files, descriptor, _LENGTH_BYTES, length)
    seal = text[len(_START) : len(_START) + HEX_DIGITS]
    unsealed = prefix + _START + _NO_SEAL + text[len(_START) + HEX_DIGITS :]
    if not text.startswith(_START) or digest(unsealed).encode() != seal:
        raise Unreadable("its header is not what its seal says")
    header = _parse(text, seal.decode(), _LENGTH_BYTES + length)
    if header.size_bytes != size:
        raise Unreadable(f"it has {size:,} bytes instead of {header.size_bytes:,}")
    return header


def read_tensors(
    files: Files, descriptor: int, header: Header, into: Tensors | None, pool: Executor
) -> Vouched:
    """Read and check the tensors of an open file.

    Args:
        files: how to read.
        descriptor: the open file.
        header: its header.
        into: tensors to read into, of the same names, shapes and dtypes; new ones by default. A
            CPU tensor that is contiguous is read into as it is, any other by way of a copy.
        pool: threads that read and check chunks side by side.

    Returns:
        What was read: ``into`` itself where that was read into as it is.

    Raises:
        Unreadable: a tensor does not check; then ``into`` holds bytes of no meaning.
        ValueError: ``into`` does not fit; nothing was read.
        OSError: the system cannot read it.
    """
    if into is not None:
        require_fit({part.name: (part.dtype, part.shape) for part in header.parts}, into)
    wanted = into or {}
    landing = {
        part.name: wanted[part.name]
        if _direct(wanted.get(part.name))
        else torch.empty(part.shape, dtype=part.dtype)
        for part in header.parts
    }
    here: list[Callable[[], None]] = []
    elsewhere: list[Callable[[], None]] = []
    for part in header.parts:
        parts = chunks(memory(landing[part.name]), header.chunk_bytes)
        for number, chunk in enumerate(parts):
            offset = part.begin + number * header.chunk_bytes
            read = partial(_read_chunk, files, descriptor, offset, chunk, part.digests[number])
            large = len(chunk) >= _WORTH_A_THREAD_BYTES
            (elsewhere if here and large else here).append(read)
    begun = [pool.submit(each) for each in elsewhere]
    try:
        for each in here:
            each()
    finally:
        wait(begun)  # all of them: nobody writes into a frame once this has ended
    for future in begun:
        future.result()
    for name, tensor in wanted.items():
        if tensor is not landing[name]:
            tensor.copy_(landing[name])
    digests = {part.name: part.digests for part in header.parts}
    return Vouched(landing, digests, header.chunk_bytes)


def _read_chunk(
    files: Files, descriptor: int, offset: int, chunk: memoryview, expected: str
) -> None:
    files.will_read(descriptor, offset + READ_AHEAD_BYTES, len(chunk))
    files.read(descriptor, offset, chunk)
    if digest(chunk) != expected:
        raise Unreadable(f"its bytes from {offset:,} on are not what their digest says")


def _direct(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.device.type == "cpu" and tensor.is_contiguous()


def _parse(text: bytes, seal: str, data: int) -> Header:
    """Return what a header says; its seal has been checked, so only a newer writer differs."""
    entries = json.loads(text)
    metadata = entries.pop("__metadata__")
    if int(metadata["format"]) > FORMAT:
        raise Unreadable(f"it has format {metadata['format']}, and this release reads {FORMAT}")
    digests = json.loads(metadata["digests"])
    parts = []
    end = 0
    for name, entry in entries.items():
        begin, end = entry["data_offsets"]
        dtype, shape = DTYPES[entry["dtype"]], tuple(entry["shape"])
        parts.append(Part(name, dtype, shape, data + begin, tuple(digests[name])))
    label = Label(
        key=metadata["key"],
        sequence=int(metadata["sequence"]),
        geometry=metadata["geometry"],
        layout=metadata["layout"],
        weights=int(metadata["weights"]),
    )
    return Header(label, tuple(parts), int(metadata["chunk_bytes"]), seal, data + end)


def _read(files: Files, descriptor: int, offset: int, size_bytes: int) -> bytes:
    content = bytearray(size_bytes)
    if files.read(descriptor, offset, memoryview(content)) != size_bytes:
        raise Unreadable("it ends within its header")
    return bytes(content)
