# SPDX-License-Identifier: Apache-2.0
import threading

import truth

gate = threading.Event()


class Worker(threading.Thread):
    def run(self):
        self.work()

    def work(self):
        gate.wait()


for name in "plain", "größer", "名前", "\U0001f40d snake", "a name that is longer than fifteen bytes", "":
    Worker(name=name, daemon=True).start()
truth.end()
