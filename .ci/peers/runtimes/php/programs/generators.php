<?php
require 'stop.inc';
function innermost() { yield 1; stop(); yield 2; }
function middle() { yield 0; yield from innermost(); }
function outermost() { yield from middle(); return 3; }
class Walks
{
    function each($list) { foreach ($list as $k => $v) { yield $k => $v; } }
    function send() { while (true) { $got = yield; if ($got == 2) { $this->end($got); } } }
    function end($n) { foreach ($this->each(outermost()) as $v); }
}
function main()
{
    $g = (new Walks)->send();
    $g->current();
    $g->send(1);
    $g->send(2);
}
main();
