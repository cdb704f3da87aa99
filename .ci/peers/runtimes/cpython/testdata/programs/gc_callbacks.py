# SPDX-License-Identifier: Apache-2.0
import gc

import truth


def watch(phase, info):
    if phase == "start":
        truth.end()


def run():
    gc.callbacks.append(watch)
    return [[] for _ in range(100000)] and gc.collect()


run()
