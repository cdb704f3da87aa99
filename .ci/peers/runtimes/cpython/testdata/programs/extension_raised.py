# SPDX-License-Identifier: Apache-2.0
import json
import os
import sys
import traceback

import calls

import truth


class Failure(ValueError):
    pass


def inner(kind, arguments):
    raise kind(*arguments)


def outer():
    inner(Failure, ("größe", 3))


def write():
    try:
        outer()
    except Failure as error:
        frames = [[f.name, f.filename, f.lineno] for f in traceback.extract_tb(sys.exc_info()[2])][1:]
        with open(os.path.join(truth.FOLDER, "raised"), "w") as file:
            json.dump({"type": "__main__.Failure", "text": str(error), "frames": frames[::-1]}, file)


write()
truth.expect_crash()
calls.must(outer)
