# SPDX-License-Identifier: Apache-2.0

"""Workers that meet in a barrier, of which one is late: ranks.py FOLDER WORKERS LATE."""

import multiprocessing
import os
import queue
import sys
import threading
import time


def write(folder, name, rank):
    path = os.path.join(folder, "%s.%d" % (name, rank))
    with open(path + ".new", "w") as file:
        file.write("%d\n" % os.getpid())
    os.rename(path + ".new", path)


def decode_image(folder, rank):
    write(folder, "ready", rank)
    while not os.path.exists(os.path.join(folder, "go")):
        time.sleep(0.2)


def load_batch(folder, rank):
    decode_image(folder, rank)


def all_reduce(folder, rank, barrier):
    if not os.path.exists(os.path.join(folder, "ready.%d" % rank)):
        write(folder, "ready", rank)
    barrier.wait()


def train(folder, rank, late, barrier):
    if rank == late:
        load_batch(folder, rank)
    all_reduce(folder, rank, barrier)


def prefetch(requests):
    while requests.get():
        pass


def work(folder, rank, late, barrier):
    requests = queue.Queue()
    loader = threading.Thread(target=prefetch, args=(requests,), name="loader-%d" % rank)
    loader.start()
    train(folder, rank, late, barrier)
    requests.put(None)
    loader.join()
    write(folder, "done", rank)


def main():
    folder, workers, late = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(workers)
    started = []
    for rank in range(workers):
        os.environ["RANK"] = str(rank)
        os.environ["WORLD_SIZE"] = str(workers)
        started.append(context.Process(target=work, args=(folder, rank, late, barrier)))
        started[-1].start()
    for process in started:
        process.join()
    return max(process.exitcode for process in started)


if __name__ == "__main__":
    sys.exit(main())
