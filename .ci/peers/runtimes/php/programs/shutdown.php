<?php
require 'stop.inc';
class End
{
    static function first() { register_shutdown_function(function () { self::second(); }); }
    static function second() { stop(); }
}
register_shutdown_function(['End', 'first']);
exit(0);
