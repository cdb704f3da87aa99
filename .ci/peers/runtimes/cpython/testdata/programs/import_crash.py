# SPDX-License-Identifier: Apache-2.0
import os
import sys

import truth

folder = os.path.join(truth.FOLDER, "modules")
os.makedirs(folder)
with open(os.path.join(folder, "crashes.py"), "w") as f:
    f.write("import truth\ntruth.abort()\n")
sys.path.insert(0, folder)
import crashes
