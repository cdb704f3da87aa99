# SPDX-License-Identifier: Apache-2.0
import sys

import truth


def entered(code, offset):
    if code.co_name == "work":
        truth.end()


def work():
    return 1


if hasattr(sys, "monitoring"):
    sys.monitoring.use_tool_id(3, "test")
    sys.monitoring.register_callback(3, sys.monitoring.events.PY_START, entered)
    sys.monitoring.set_events(3, sys.monitoring.events.PY_START)
    work()
truth.end()
