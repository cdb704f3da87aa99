# SPDX-License-Identifier: Apache-2.0
import gc
import weakref

import truth


class Node:
    pass


def gone(reference):
    truth.end()


def run():
    node = Node()
    node.self = node
    keep = weakref.ref(node, gone)
    del node
    gc.collect()
    return keep


run()
