# SPDX-License-Identifier: Apache-2.0
import multiprocessing

import truth


def child(n):
    truth.end()
    return n


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=child, args=(3,))
    process.start()
    process.join()
