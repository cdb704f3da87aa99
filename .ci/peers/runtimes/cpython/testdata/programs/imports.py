# SPDX-License-Identifier: Apache-2.0
import os
import sys

import truth

folder = os.path.join(truth.FOLDER, "modules")
os.makedirs(os.path.join(folder, "pack"))
files = {"pack/__init__.py": "from . import first\n", "pack/first.py": "import pack.second\n", "pack/second.py": "import truth\n\nclass Late:\n    truth.end()\n"}
for name, text in files.items():
    with open(os.path.join(folder, name), "w") as f:
        f.write(text)
sys.path.insert(0, folder)


def load():
    import pack
    return pack


load()
