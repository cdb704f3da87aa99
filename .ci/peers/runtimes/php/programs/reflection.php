<?php
require 'stop.inc';
class Subject
{
    private $value;
    function __construct($value) { $this->value = $value; (new ReflectionFunction('named'))->invoke($this); }
    private function secret($n) { stop($n); }
}
function named($object)
{
    $m = new ReflectionMethod($object, 'secret');
    $m->setAccessible(true);
    $m->invokeArgs($object, [4]);
}
(new ReflectionClass('Subject'))->newInstance(4);
