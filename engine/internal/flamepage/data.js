// SPDX-License-Identifier: Apache-2.0

// The data of the page, as the program packed them: see pack.go.

// readCalls reads the tree of calls: call 0 is the whole, the others follow their callers.
const readCalls = (columns, count) => {
  const caller = columns.parents(count), key = new Int32Array(count + 1);
  for (let call = 1; call <= count; call++) {
    key[call] = columns.number();
  }
  key[0] = -1;
  return { caller, key };
};

const readSamples = (columns, event, hasThreads) => {
  const count = event.samples;
  let stack = 0, time = 0;
  const stacks = columns.column(new Int32Array(event.stacks), (n) => stack += zigzag(n));
  event.times = event.timed ? columns.column(new Float64Array(count), (n) => time += n) : null; // microseconds
  event.threads = new Int32Array(count);
  if (hasThreads) {
    columns.column(event.threads);
  }
  event.calls = columns.column(new Int32Array(count), (n) => stacks[n]);
  event.weights = columns.column(new Float64Array(count));
  event.bases = event.base ? columns.column(new Float64Array(count)) : null;
};

const readData = (columns) => {
  const data = columns.json();
  if (data.threads.length === 0) {
    data.threads.push({ Name: '', PID: -1, TID: -1 }); // nothing is known of the threads
  }
  data.tree = withLinks(readCalls(columns, data.calls));
  data.events.forEach((event) => readSamples(columns, event, data.threads.length > 1));
  return data;
};
