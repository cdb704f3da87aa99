# SPDX-License-Identifier: Apache-2.0
import cProfile
import sys

import truth


def profile(frame, event, argument):
    if event == "c_call" and argument is len:
        sys.setprofile(None)
        truth.end()


def work():
    return len([1])


def run():
    sys.setprofile(profile)
    work()


cProfile.run("import truth") if sys.version_info < (3, 12) else None
run()
