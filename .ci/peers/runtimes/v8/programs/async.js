// SPDX-License-Identifier: Apache-2.0
'use strict';
async function leaf() { await null; await new Promise((r) => setTimeout(r, 1)); die(); }
async function* stream() { yield 1; await leaf(); yield 2; }
async function main() { for await (const x of stream()) void x; }
main().then(() => {});
