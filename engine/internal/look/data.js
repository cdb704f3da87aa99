// SPDX-License-Identifier: Apache-2.0

// The data of a page, as the program packed them: see pack.go.

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

const zigzag = (n) => n % 2 ? -(n + 1) / 2 : n / 2;

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
  const json = () => JSON.parse(text(number()));
  // parents is a column of the nodes of a tree in preorder: node 0 is the whole.
  const parents = (count) => {
    const list = new Int32Array(count + 1), path = [0];
    let level = 0;
    for (let node = 1; node <= count; node++) {
      level += 1 - number();
      list[node] = path[level - 1];
      path[level] = node;
    }
    return list;
  };
  return { number, column, json, parents };
};

const packedColumns = async () => {
  const data = document.querySelector('#data'), columns = columnsOf(await inflated(decoded(data.textContent)));
  data.remove();
  return columns;
};
