<?php
require 'stop.inc';
class Wrong extends RuntimeException
{
    function __construct($text, $previous = null) { parent::__construct($text, 4, $previous); }
}
class Guard
{
    function __destruct() { stop(); }
}
function thrower($n)
{
    $guard = new Guard;
    if ($n) {
        throw new Wrong("the number is $n", new LogicException('before'));
    }
}
function caller()
{
    try {
        thrower(7);
    } finally {
        echo 'left';
    }
}
try {
    caller();
} catch (Wrong $e) {
}
