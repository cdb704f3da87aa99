# SPDX-License-Identifier: Apache-2.0
import copy
import json
import pickle

import truth


class Odd:
    def __reduce__(self):
        return restore, (json.dumps(self, default=convert),)


def convert(value):
    return "odd"


def restore(text):
    truth.end()
    return Odd()


pickle.loads(pickle.dumps(copy.copy([Odd()])))
copy.deepcopy(Odd())
