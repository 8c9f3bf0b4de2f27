"""A file that only grows, written inside the user's process: whole pieces, and nothing left half-written."""

from __future__ import annotations

import errno
import fcntl
import os

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the largest allowed file size is reached",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "no permission to write",
    errno.EPERM: "no permission to write",
    errno.EIO: "the disk reports an error",
    errno.ENOENT: "the folder is gone",
    errno.EMFILE: "this process has no file descriptor left",
}


def reason(error: OSError) -> str:
    """What is wrong with the disk, in words."""
    return _REASONS.get(error.errno or 0, error.strerror or type(error).__name__)


class AppendFile:
    """A file opened for appending at its first write, mode 0600, closed on exec.

    Args:
        path: where it lies; its folder must exist.
        lines: whether it consists of lines; else what is written counts only as a whole.

    Attributes:
        size: bytes in the file after the last write.
    """

    def __init__(self, path: str, lines: bool) -> None:
        self.path = path
        self.size = 0
        self._lines = lines
        self._fd = -1
        self._inode: tuple[int, int] = (0, 0)
        self._torn = False

    def append(self, data: bytes) -> tuple[int, OSError | None]:
        """Append `data`.

        Returns:
            How many bytes of it stand in the file, and what stopped the rest. Of lines whole ones stand, of anything
            else all or nothing: a torn rest is cut off again.
        """
        done = 0
        stopped: OSError | None = None
        try:
            self._ready()
            while done < len(data):
                done += os.write(self._fd, memoryview(data)[done:] if done else data)
        except OSError as error:
            stopped = error.with_traceback(None)  # whose frames would keep `data` alive
            done = self._cut_back(done, data.rfind(b"\n", 0, done) + 1 if self._lines else 0)
        self.size += done
        return done, stopped

    def _cut_back(self, done: int, whole: int) -> int:
        """Take away what was written beyond the first `whole` bytes; returns `whole`."""
        if done > whole:
            try:
                os.ftruncate(self._fd, self.size + whole)
            except OSError:
                self.size += done - whole
                self._torn = self._lines  # what follows must start on a line of its own; readers pass over the torn one
        return whole

    def _ready(self) -> None:
        """Open the file, or make sure that the descriptor is still ours.

        Scripts that turn into daemons close every descriptor, and the number may belong to a file of theirs by now;
        a file that was deleted under us must not swallow what is written.
        """
        if self._fd >= 0:
            try:
                stat = os.fstat(self._fd)
            except OSError:
                self._fd = -1
            else:
                if (stat.st_dev, stat.st_ino) != self._inode:
                    self._fd = -1
                elif stat.st_nlink == 0:
                    self.close()
        if self._fd < 0:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            if fd < 3:  # the script runs with a standard stream closed: its number must not lead to our file
                low, fd = fd, fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
                os.close(low)
            stat = os.fstat(fd)
            self._fd, self._inode, self.size = fd, (stat.st_dev, stat.st_ino), stat.st_size
            # After an exec the process has the same pid and start, so the file may be there, its end torn.
            self._torn = self._lines and self.size > 0 and os.pread(fd, 1, self.size - 1) != b"\n"
        if self._torn:
            self.size += os.write(self._fd, b"\n")
            self._torn = False

    def sync(self) -> None:
        """Have what was written reach the disk.

        Raises:
            OSError: the disk could not take it. A file system that knows no fsync is no error.
        """
        if self._fd >= 0:
            try:
                os.fsync(self._fd)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
                    raise

    def close(self) -> None:
        """Close the file; the next write opens it again."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            try:
                stat = os.fstat(fd)
                if (stat.st_dev, stat.st_ino) == self._inode:
                    os.close(fd)
            except OSError:
                pass
