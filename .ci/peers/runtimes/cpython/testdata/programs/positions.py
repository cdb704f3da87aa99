# SPDX-License-Identifier: Apache-2.0
import ast

import truth

source = "def far():\n    stop(\n        1,\n        2,\n    )\n\n\nfar()\n"
tree = ast.parse(source)
ast.increment_lineno(tree, 1000000)


def stop(*arguments):
    return (
        Chain()
        .first()
        .second(
            truth.end(),
        )
    )


class Chain:
    def first(self):
        return self

    def second(self, value):
        return value


exec(compile(tree, "far away.py", "exec"), {"stop": stop})
