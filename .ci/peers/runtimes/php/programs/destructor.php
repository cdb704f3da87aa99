<?php
require 'stop.inc';
class Owner
{
    public $held;
    public $last;
    function __construct($held, $last = false) { $this->held = $held; $this->last = $last; }
    function __destruct()
    {
        $this->held = null;
        if ($this->last) {
            stop();
        }
    }
}
function scope()
{
    $a = new Owner(new Owner(new Owner(null, true)));
    $b = $a;
    $a = 5;
    return $b = null;
}
scope();
