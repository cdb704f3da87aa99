# SPDX-License-Identifier: Apache-2.0
import multiprocessing
import os
import sys

import truth


def child(n):
    truth.end()
    return n


def run(method):
    context = multiprocessing.get_context(method)
    process = context.Process(target=child, args=(3,))
    process.start()
    process.join()


if __name__ == "__main__":
    run("fork")
