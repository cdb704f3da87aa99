# SPDX-License-Identifier: Apache-2.0
import sys

import truth


def trace(frame, event, argument):
    if event == "return" and frame.f_code.co_name == "work":
        sys.settrace(None)
        truth.end()
    return trace


def work():
    value = 1
    value += 1
    return value


sys.settrace(trace)
work()
