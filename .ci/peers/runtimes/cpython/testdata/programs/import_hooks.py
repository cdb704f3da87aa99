# SPDX-License-Identifier: Apache-2.0
import importlib.abc
import importlib.util
import sys

import truth


class Loader(importlib.abc.Loader):
    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(compile("import truth\nvalue = [truth.end() for _ in range(1)]\n", "<virtual %s>" % module.__name__, "exec"), module.__dict__)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, Loader()) if name == "virtual" else None


sys.meta_path.insert(0, Finder())
importlib.import_module("virtual")
