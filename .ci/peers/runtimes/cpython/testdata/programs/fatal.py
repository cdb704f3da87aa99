# SPDX-License-Identifier: Apache-2.0
import os

import truth


def run():
    truth.expect_crash()
    os.abort()


run()
