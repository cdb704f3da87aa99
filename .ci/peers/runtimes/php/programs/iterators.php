<?php
require 'stop.inc';
class Numbers implements IteratorAggregate, ArrayAccess, Countable
{
    #[ReturnTypeWillChange]
    function getIterator() { return new Each($this); }
    #[ReturnTypeWillChange]
    function offsetExists($at) { return true; }
    #[ReturnTypeWillChange]
    function offsetGet($at) { return count($this); }
    #[ReturnTypeWillChange]
    function offsetSet($at, $value) {}
    #[ReturnTypeWillChange]
    function offsetUnset($at) {}
    #[ReturnTypeWillChange]
    function count() { stop(); return 1; }
}
class Each implements Iterator
{
    private $numbers;
    private $n = 0;
    function __construct($numbers) { $this->numbers = $numbers; }
    #[ReturnTypeWillChange]
    function current() { return $this->numbers[$this->n]; }
    #[ReturnTypeWillChange]
    function key() { return $this->n; }
    #[ReturnTypeWillChange]
    function next() { $this->n++; }
    #[ReturnTypeWillChange]
    function rewind() { $this->n = 0; }
    #[ReturnTypeWillChange]
    function valid() { return $this->n < 2; }
}
function spread(...$list) { return $list; }
foreach (new IteratorIterator(new Numbers) as $key => $value) {
    spread(...(new Numbers));
}
