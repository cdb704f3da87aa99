// SPDX-License-Identifier: Apache-2.0
'use strict';
class Shape {
  #n;
  constructor(n) { this.#n = n; this.made = true; }
  get area() { return inner(this.#n); }
  static of(n) { return new Shape(n).area; }
}
function inner(n) {
  const boom = (k) => {
    if (k > 2) die();
    return boom(k + 1) + 1;
  };
  return [1, 2].map(function mapper(x) { return boom(x); })[0];
}
class Derived extends Shape {
  constructor(n) {
    super(n);
    this.v = Shape.of(n);
  }
}
const table = { ['com' + 'puted']() { return new Derived(3).v; }, get g() { return this.computed(); } };
const viaEval = new Function('t', 'return t.g');
function outer() { return eval('viaEval(table)'); }
outer();
