# SPDX-License-Identifier: Apache-2.0
import sys

import truth


def fail():
    try:
        raise ValueError("first")
    except ValueError as error:
        try:
            raise KeyError("second") from error
        finally:
            cleanup()


def cleanup():
    pass


def hook(kind, value, traceback):
    try:
        raise RuntimeError("in the hook")
    except RuntimeError:
        truth.end()


sys.excepthook = hook
fail()
