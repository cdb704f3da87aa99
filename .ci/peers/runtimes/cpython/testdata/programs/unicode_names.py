# SPDX-License-Identifier: Apache-2.0
import truth

source = "def größe_名():\n    stop()\n\ngröße_名()\n"


class Ünïcode:
    def größe(self):
        exec(compile(source, "/example/日本 \U0001f40d.py", "exec"), {"stop": truth.end})


Ünïcode().größe()
