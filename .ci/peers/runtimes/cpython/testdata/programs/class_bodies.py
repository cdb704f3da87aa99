# SPDX-License-Identifier: Apache-2.0
import truth


class Meta(type):
    def __new__(meta, name, bases, names, **kwargs):
        made = super().__new__(meta, name, bases, names)
        return made

    def __init__(cls, name, bases, names, **kwargs):
        super().__init__(name, bases, names)

    def __call__(cls, *args):
        return super().__call__(*args)


class Field:
    def __set_name__(self, owner, name):
        truth.end()


class Base(metaclass=Meta):
    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)


class Outer:
    class Inner(Base):
        value = Field()
