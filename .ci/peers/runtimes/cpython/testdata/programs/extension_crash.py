# SPDX-License-Identifier: Apache-2.0
import threading

import calls

import truth

gate = threading.Event()


def fails():
    calls.crash()


def run():
    calls.twice(fails)


threading.Thread(target=gate.wait, daemon=True).start()
truth.expect_crash()
run()
