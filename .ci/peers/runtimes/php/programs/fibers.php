<?php
// needs 8.1
require 'stop.inc';
function sleeper($n) { Fiber::suspend($n); deeper($n); }
function deeper($n) { Fiber::suspend(-$n); }
class Task
{
    public function __construct(private int $n) {}
    public function run(): void { sleeper($this->n); }
}
$waiting = new Fiber([new Task(1), 'run']);
$waiting->start();
$further = new Fiber([new Task(2), 'run']);
$further->start();
$further->resume();
$new = new Fiber('sleeper');
$outer = new Fiber(function () {
    $inner = new Fiber(function () { array_map('stop', [1]); });
    $inner->start();
});
$outer->start();
