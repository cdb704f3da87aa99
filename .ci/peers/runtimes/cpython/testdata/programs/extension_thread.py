# SPDX-License-Identifier: Apache-2.0
import calls

import truth


def entered():
    truth.register()
    calls.twice(truth.end)


def run():
    calls.in_thread(entered)


run()
