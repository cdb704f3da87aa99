<?php
declare(ticks=1);
require 'stop.inc';
function tick() { static $n = 0; if (++$n == 5) { stop(); } }
register_tick_function('tick');
function work()
{
    $a = 1;
    $a++;
    $a++;
    return $a;
}
work();
work();
