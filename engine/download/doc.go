// SPDX-License-Identifier: Apache-2.0

// Package download brings files of servers onto this machine, and keeps them in a cache.
//
// Every answer is taken as hostile. Its headers, its redirections, its size and its time
// are bounded, and a Protocol checks the file before it gets a name in the cache. What is
// cut short or wrong is never kept. That no server had a file is remembered for a while,
// and a server that did not answer is not asked again for a while.
package download
