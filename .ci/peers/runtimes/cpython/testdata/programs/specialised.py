# SPDX-License-Identifier: Apache-2.0
import truth


class Box:
    def __init__(self, items):
        self.items = items

    def __getitem__(self, index):
        return self.take(index)

    def __iter__(self):
        for item in self.items:
            yield item

    def __len__(self):
        return stop(len(self.items))

    @property
    def size(self):
        return len(self)

    def take(self, index, *, plus=0):
        return self.items[index] + plus + (self.size if index == self.last else 0)

    @property
    def last(self):
        return 2


def stop(n):
    global count
    count += 1
    if count == 5000:
        truth.end()
    return n


def run(box):
    total = 0
    for n in range(4):
        total += box[n]
    for item in box:
        total += item
    return total


count = 0
box = Box([1, 2, 3, 4])
while True:
    run(box)
