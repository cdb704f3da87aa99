<?php
require 'stop.inc';
class Maker
{
    private $by = 3;

    function make()
    {
        return function ($x) {
            $f = static function ($y) {
                $g = fn ($z) => stop($z);
                return $g($y);
            };
            return $f($x * $this->by);
        };
    }
}
$outer = function (callable $f) {
    return call_user_func($f, 14);
};
$bound = Closure::bind(function ($f) { return $this->by + $f(4); }, new Maker, Maker::class);
$outer(function ($n) use ($bound) { return $bound((new Maker)->make()); });
