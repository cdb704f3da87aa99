<?php
require 'stop.inc';
class Ring
{
    public $next;
    function __destruct() { if ($this->next) { stop(); } }
}
function ring() { $a = new Ring; $a->next = $b = new Ring; $b->next = $a; }
ring();
function collect() { return gc_collect_cycles(); }
collect();
