# SPDX-License-Identifier: Apache-2.0
import io
import unittest

import truth


class Case(unittest.TestCase):
    def test_one(self):
        with self.assertRaises(ValueError):
            self.stop()

    def stop(self):
        truth.end()


unittest.TextTestRunner(stream=io.StringIO()).run(unittest.defaultTestLoader.loadTestsFromTestCase(Case))
