<?php
// needs 8.4
require 'stop.inc';
class Temperature
{
    public float $celsius {
        get => $this->celsius ?? $this->read();
        set(float $value) { $this->celsius = $value; }
    }
    private function read(): float { return array_find([1, 2], function ($n) { return $n == 2 && stop(); }) ?? 0; }
}
$lazy = (new ReflectionClass('Temperature'))->newLazyGhost(function ($t) { $t->celsius; });
function reads($t) { return $t->celsius; }
reads($lazy);
