<?php
// needs 8.5
require 'stop.inc';
class Pipe { public static function through(string $s): string { return $s |> strtoupper(...) |> (fn ($x) => clone(new Pipe, ['text' => $x])) |> (fn ($p) => $p->end()); }
    public string $text = '';
    public function end(): string { return $this->text |> stop(...); } }
'abc' |> Pipe::through(...);
