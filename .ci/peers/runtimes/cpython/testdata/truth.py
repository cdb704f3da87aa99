# SPDX-License-Identifier: Apache-2.0
"""Writes which frames each thread of this process has, and stops there.

A part of the file "truth" is one moment of one interpreter; where an interpreter calls another one, the part of the
caller is the earlier one. "dump" has what faulthandler writes at the same moment. The line that writes them is the line
that stops, so that it is right in the innermost frame, too.
"""
import json
import os
import sys
import threading
import time

try:
    import faulthandler
except ImportError:  # as in interpreters that are kept apart, of 3.12 and later
    faulthandler = None

FOLDER = os.environ["TRUTH_FOLDER"]
TRUTH = os.path.join(FOLDER, "truth")
DUMP = os.open(os.path.join(FOLDER, "dump"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)  # no file object, which may end before
dump = faulthandler.dump_traceback if faulthandler else lambda *arguments, **named: None
natives = {}  # of threads that the module threading does not know


def native():
    get = getattr(threading, "get_native_id", None)
    return get() if get else 0


def register():
    """Notes the native ID of a thread that was not made by the module threading."""
    natives[threading.get_ident()] = native()


def expect_crash():
    """Has faulthandler write the truth when the process crashes."""
    settle()
    faulthandler.enable(DUMP, all_threads=True)


def _position(frame):
    try:
        position = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    except (AttributeError, IndexError):
        return None
    return None if position[2] is None else position[2] + 1


def _stack(frame):
    frames = []
    while frame is not None:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", ""), code.co_name, code.co_filename, frame.f_lineno or 0, _position(frame) or 0])
        frame = frame.f_back
    return frames


def part(**more):
    """Writes the stacks of all threads of this interpreter. The frame of this function is none of them."""
    ids, me = dict(natives), threading.get_ident()
    names = {}
    for thread in threading.enumerate():
        ids.setdefault(thread.ident, getattr(thread, "native_id", 0) or 0)
        names[thread.ident] = thread.name
    ids[me] = native()
    threads = []
    for ident, frame in sys._current_frames().items():
        current = ident == me
        stack = sys._getframe(1) if current else frame
        threads.append({"ident": ident, "native": ids.get(ident, 0), "name": names.get(ident, ""), "current": current, "frames": _stack(stack)})
    line = json.dumps(dict({"pid": os.getpid(), "threads": threads}, **more)) + "\n"
    file = os.open(TRUTH, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, line.encode("ascii"))
    finally:
        os.close(file)


def end():
    """Writes the truth and stops until the process is ended from outside."""
    settle()
    dump(DUMP, all_threads=True), part(), os.write(1, b"ready %d\n" % os.getpid()), os.read(0, 1)


def abort():
    """Writes the truth and aborts."""
    settle()
    dump(DUMP, all_threads=True), part(), os.abort()


def settle(seconds=0.2):
    """Lets other threads reach where they wait."""
    if threading.active_count() > 1 or natives:
        time.sleep(seconds)
