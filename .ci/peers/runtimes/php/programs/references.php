<?php
namespace Deep\Space;
require 'stop.inc';
interface Shape { const SIDES = 4; function area(float $scale = 1.0): float; }
final class Square implements Shape
{
    protected $side = 2.5;
    private static $all = [];
    public $self;
    function __construct() { self::$all[] = $this; $this->self = &$this->side; $this->extra = [1, 'two' => [2, [3]]]; }
    function area(float $scale = 1.0): float { $text = "π \0 \x80"; $null = null; $list = [-1 => true, 'k' => 1e100]; $stream = STDIN; \stop($scale, $text, 7); return 0; }
}
function sum(Shape $shape, int &$count, ...$more) { $count++; $unset; return $shape->area(...$more); }
$count = 0;
sum(new Square, $count, 2.0, PHP_INT_MIN);
