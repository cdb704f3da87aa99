# SPDX-License-Identifier: Apache-2.0
import os
import sys
import threading

import truth

folder = os.path.join(truth.FOLDER, "modules")
os.makedirs(folder)
with open(os.path.join(folder, "slow.py"), "w") as f:
    f.write("import time\ntime.sleep(1000)\n")
sys.path.insert(0, folder)


def load():
    import slow
    return slow


for _ in range(2):
    threading.Thread(target=load, daemon=True).start()
truth.end()
