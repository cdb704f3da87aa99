// SPDX-License-Identifier: Apache-2.0

// Package download fetches files from servers onto this machine, and keeps them in a cache.
//
// Every answer is taken as hostile. Its headers, its redirections, its size and its time
// are bounded, and a Protocol checks the file before it gets a name in the cache. A file
// that is cut short or wrong is never kept. A file that no server had, and a server that
// did not answer, are not asked for again for a while.
package download
