// SPDX-License-Identifier: Apache-2.0
'use strict';

// The button #theme of a page: dark where the page is light, and light where it is dark. What
// the system prefers holds until it is pressed.
(() => {
  const theme = document.querySelector('#theme'), root = document.documentElement;
  const prefersDark = matchMedia('(prefers-color-scheme: dark)');
  const isDark = () => root.classList.contains('dark') || prefersDark.matches && !root.classList.contains('light');
  const nameTheme = () => { theme.textContent = isDark() ? 'Light' : 'Dark'; };
  theme.addEventListener('click', () => {
    const next = isDark() ? 'light' : 'dark';
    root.classList.remove('light', 'dark');
    root.classList.add(next);
    nameTheme();
  });
  prefersDark.addEventListener('change', nameTheme);

  // A page in a frame does not take files: it tells the page around it that they are dragged here.
  const tell = (event) => {
    if (parent !== self && Array.from(event.dataTransfer.types).includes('Files')) {
      event.preventDefault();
      if (event.type !== 'drop') {
        parent.postMessage('unwindd: files', '*');
      }
    }
  };
  ['dragenter', 'dragover', 'drop'].forEach((kind) => addEventListener(kind, tell));
  nameTheme();
})();
