# SPDX-License-Identifier: Apache-2.0
import re

import truth


def replace(match):
    if match.group() == "b":
        truth.end()
    return match.group() * 2


def run():
    return re.sub("[a-c]", replace, "abc")


run()
