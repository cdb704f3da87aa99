<?php
require 'stop.inc';
set_exception_handler(function ($e) {
    try {
        throw new DomainException('second', 1, $e);
    } catch (DomainException $d) {
        after($d->getPrevious());
    }
});
function after($e)
{
    try {
        return intdiv(1, 0);
    } catch (DivisionByZeroError $e) {
        try {
            throw $e;
        } finally {
            stop();
        }
    }
}
throw new Exception('first');
