# SPDX-License-Identifier: Apache-2.0
import calls

import truth


def gone():
    truth.end()


def run():
    held = calls.Notifier(gone)
    held = None
    return held


run()
