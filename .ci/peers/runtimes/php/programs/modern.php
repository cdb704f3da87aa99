<?php
// needs 8.2
require 'stop.inc';
enum Suit: string
{
    case Hearts = 'H';
    const Wild = self::Hearts;
    public static function pick(string $s): self { return self::from($s)->checked(extra: 1); }
    public function checked(int $first = 2, int ...$more): self { return (match (true) { $this === self::Wild => (new Point(1, y: 2))->with(...), default => $this })(); }
}
readonly class Point
{
    public function __construct(public int $x, public int $y = 0) {}
    public function with(): Suit { $f = strlen(...); return (stop(...))(named: $f, more: $this) ?? Suit::Hearts; }
}
Suit::pick('H');
