<?php
require 'stop.inc';
trait Greets
{
    function greet() { return $this->name(); }
    static function make() { return new static; }
}
abstract class Base
{
    function name() { return (string) $this; }
    function __toString() { return $this->missing('a', 1); }
    function __call($name, $arguments) { return Fallback::alsoMissing($name); }
}
class Fallback
{
    static function __callStatic($name, $arguments) { return (new Other)->property; }
}
class Child extends Base
{
    use Greets;
    function name() { return parent::name(); }
}
class Other
{
    function __get($name) { $this->$name = 5; return $this; }
    function __set($name, $value) { return isset($this->there); }
    function __isset($name) { return $this($name); }
    function __invoke($name) { return new Made($name); }
}
class Made
{
    function __construct($name) { unset($this->$name); }
    function __unset($name) { stop(); }
}
Child::make()->greet();
