# SPDX-License-Identifier: Apache-2.0
import os
import sys
import zipfile

import truth

path = os.path.join(truth.FOLDER, "modules.zip")
with zipfile.ZipFile(path, "w") as z:
    z.writestr("zipped.py", "import truth\n\ndef run():\n    truth.end()\n")
sys.path.insert(0, path)
import zipped

zipped.run()
