"""Reads a whole discovery log: header, entries, header again; once more from the start when it changed meanwhile.

Source: NVMe-oF 1.1 section 5.3: a log read in parts is of one generation only if GENCTR is the same at the end.
"""

from fabric.engine.nvmeof.errors import NotReadyError, status_error
from fabric.engine.nvmeof.host.outputs import DiscoveryLog, Failed, RequestId
from fabric.engine.nvmeof.host.requests import Body
from fabric.engine.nvmeof.host.session import Session
from fabric.engine.nvmeof.host.slots import Pending
from fabric.engine.nvmeof.wire import admin, logs
from fabric.engine.nvmeof.wire.completion import Cqe
from fabric.engine.nvmeof.wire.status import Disposition
from fabric.errors import EngineError, RemoteProtocolError

__all__ = ("DiscoveryReader",)

_PART_BYTES = 4 * logs.DISCOVERY_ENTRY_BYTES  # what a slot's scratch holds
_MAX_TRIES = 8  # ours: a log that changes while it is read so often is not worth waiting for
_MAX_RECORDS = 1 << 16  # ours: a forged count must not fill memory


class DiscoveryReader:
    """One log at a time.

    Args:
        session: a controller of the discovery subsystem.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._request: RequestId | None = None
        self._header: logs.DiscoveryHeader | None = None
        self._entries = bytearray()
        self._tries = 0

    def start(self, request: RequestId, now_ns: int) -> None:
        """Begins; ends with DiscoveryLog or Failed.

        Raises:
            NotReadyError: another log is being read.
        """
        if self._request is not None:
            raise NotReadyError("a discovery log is being read already")
        self._request, self._tries = request, 0
        self._restart(now_ns)

    def answered(self, pending: Pending, cqe: Cqe, payload: bytes, now_ns: int) -> None:
        """Takes a part of the log."""
        del pending
        if cqe.status:
            self._fail(status_error(cqe.status, where="discovery log"))
            return
        try:
            self._take(payload, now_ns)
        except EngineError as error:
            self._fail(error)

    def lost(self, pending: Pending, error: EngineError, now_ns: int) -> None:
        """Takes the loss of the part."""
        del pending, now_ns
        self._fail(error)

    def _take(self, payload: bytes, now_ns: int) -> None:
        if self._header is None:
            self._header = logs.DiscoveryHeader.parse(payload)
            if self._header.records > _MAX_RECORDS:
                raise RemoteProtocolError("a discovery log of that size cannot be", found=str(self._header.records))
            self._ask(now_ns)
        elif self._missing():
            self._entries += payload[: min(self._missing(), _PART_BYTES)]
            self._ask(now_ns)
        elif logs.DiscoveryHeader.parse(payload) == self._header:
            self._finish(self._header)
        else:
            self._restart(now_ns)

    def _finish(self, header: logs.DiscoveryHeader) -> None:
        self._session.emit(
            DiscoveryLog(header.generation, logs.parse_discovery_entries(bytes(self._entries), header.records))
        )
        self._request = None

    def _restart(self, now_ns: int) -> None:
        self._tries += 1
        if self._tries > _MAX_TRIES:
            raise RemoteProtocolError("the discovery log changed each time it was read", found=f"{_MAX_TRIES} times")
        self._header = None
        self._entries.clear()
        self._ask(now_ns)

    def _missing(self) -> int:
        records = self._header.records if self._header else 0
        return records * logs.DISCOVERY_ENTRY_BYTES - len(self._entries)

    def _ask(self, now_ns: int) -> None:
        offset, length = 0, logs.DISCOVERY_HEADER_BYTES
        if self._missing():
            offset = logs.DISCOVERY_HEADER_BYTES + len(self._entries)
            length = min(self._missing(), _PART_BYTES)
        command = admin.get_log_page(admin.LogPage.DISCOVERY, length, offset=offset)
        body = Body(command, incoming_bytes=length)
        self._session.admin(body, self, now_ns, timeout_ns=self._session.config.admin_timeout_ns)

    def _fail(self, error: EngineError) -> None:
        if self._request is not None:
            kept = getattr(error, "disposition", Disposition.RETRY_LATER)
            self._session.emit(Failed(self._request, 0, error, kept))
        self._request = None
