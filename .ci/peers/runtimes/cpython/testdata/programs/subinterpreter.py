# SPDX-License-Identifier: Apache-2.0
import sys

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

import truth

source = """
import sys
sys.path[:] = %r
import truth

def inner():
    truth.end()

inner()
""" % (sys.path,)


def run():
    number = interpreters.create()
    truth.part(below=True), getattr(interpreters, "run_string")(number, source)


run()
