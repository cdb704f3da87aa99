# SPDX-License-Identifier: Apache-2.0
import ctypes

import truth


def read(address):
    return ctypes.string_at(address)


def run():
    truth.expect_crash()
    return read(8)


run()
