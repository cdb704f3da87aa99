# SPDX-License-Identifier: Apache-2.0
import truth


class Described:
    def __get__(self, instance, owner):
        return instance.missing

    def __set__(self, instance, value):
        pass


class Object:
    member = Described()

    @property
    def value(self):
        return self.member

    def __getattr__(self, name):
        if count == 2999:
            truth.end()
        return name


def read(o):
    return o.value


count, thing = 0, Object()
while count < 3000:
    read(thing)
    count += 1
