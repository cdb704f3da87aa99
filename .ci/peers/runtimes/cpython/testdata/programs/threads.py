# SPDX-License-Identifier: Apache-2.0
import os
import queue
import select
import socket
import threading
import time

import truth

lock, event, jobs = threading.Lock(), threading.Event(), queue.Queue()
condition, barrier = threading.Condition(), threading.Barrier(2)
lock.acquire()
reading, _ = os.pipe()
left, _right = socket.socketpair()


def by_lock():
    with lock:
        pass


def by_condition():
    with condition:
        condition.wait()


def by_poll():
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    poll.poll()


for target in by_lock, by_condition, by_poll, event.wait, jobs.get, barrier.wait, lambda: os.read(reading, 1), lambda: left.recv(1), lambda: time.sleep(1000):
    threading.Thread(target=target, daemon=True).start()
truth.end()
