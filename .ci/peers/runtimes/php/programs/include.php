<?php
namespace Files;
require_once 'stop.inc';
function load($file)
{
    return include $file;
}
$evaluated = 'namespace Files;

function evaluated() { return load(__DIR__ . "/included.inc"); }
return evaluated();';
load('included.inc') || eval($evaluated);
