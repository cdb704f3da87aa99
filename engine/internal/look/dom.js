// SPDX-License-Identifier: Apache-2.0

const one = (selector) => document.querySelector(selector);
const every = (selector) => Array.from(document.querySelectorAll(selector));

const element = (name, text, className) => {
  const e = document.createElement(name);
  if (text !== undefined) {
    e.textContent = text; // names are whatever a recording has
  }
  if (className) {
    e.className = className;
  }
  return e;
};
