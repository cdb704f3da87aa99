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
  nameTheme();
})();
