// SPDX-License-Identifier: Apache-2.0

// The data of the page, as the program packed them: see pack.go.

const decoded = (text) => {
  const chars = atob(text), bytes = new Uint8Array(chars.length);
  for (let i = 0; i < chars.length; i++) {
    bytes[i] = chars.charCodeAt(i);
  }
  return bytes;
};

const inflated = async (bytes) => {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
};

// columnsOf reads numbers (unsigned LEB128) one after the other.
const columnsOf = (bytes) => {
  let at = 0;
  const number = () => {
    let byte = bytes[at++];
    if (byte < 128) {
      return byte;
    }
    let n = byte & 127, scale = 128;
    do {
      byte = bytes[at++];
      n += (byte & 127) * scale;
      scale *= 128;
    } while (byte > 127);
    return n;
  };
  const column = (list, change = (n) => n) => {
    for (let i = 0; i < list.length; i++) {
      list[i] = change(number(), i);
    }
    return list;
  };
  const text = (length) => new TextDecoder().decode(bytes.subarray(at, at += length));
  return { number, column, text };
};

// readCalls reads the tree of calls: call 0 is the whole, the others follow their callers.
const readCalls = (columns, count) => {
  const caller = new Int32Array(count + 1), key = new Int32Array(count + 1), path = [0];
  let level = 0;
  for (let call = 1; call <= count; call++) {
    level += 1 - columns.number();
    caller[call] = path[level - 1];
    path[level] = call;
  }
  for (let call = 1; call <= count; call++) {
    key[call] = columns.number();
  }
  key[0] = -1;
  return { caller, key };
};

const zigzag = (n) => n % 2 ? -(n + 1) / 2 : n / 2;

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

const readData = async (text) => {
  const columns = columnsOf(await inflated(decoded(text)));
  const data = JSON.parse(columns.text(columns.number()));
  if (data.threads.length === 0) {
    data.threads.push({ Name: '', PID: -1, TID: -1 }); // nothing is known of the threads
  }
  data.tree = withLinks(readCalls(columns, data.calls));
  data.events.forEach((event) => readSamples(columns, event, data.threads.length > 1));
  return data;
};
