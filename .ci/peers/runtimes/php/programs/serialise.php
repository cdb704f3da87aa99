<?php
require 'stop.inc';
class Stored
{
    public $of;
    function __serialize(): array { return ['a' => 1]; }
    function __unserialize(array $data): void { $this->of = clone $this; }
    function __clone() { var_export(new Shown, true); print_r(new Shown, true); debug($this); }
}
class Shown
{
    function __debugInfo() { stop(); return []; }
}
function debug($x) { ob_start(); var_dump(new Shown); }
unserialize(serialize(new Stored));
