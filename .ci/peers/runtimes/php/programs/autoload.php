<?php
require 'stop.inc';
class Loader
{
    function load($class)
    {
        if ($class == 'Second') {
            stop();
        }
        eval("class $class extends Second {}");
    }
}
spl_autoload_register([new Loader, 'load']);
function uses() { return new First; }
uses();
