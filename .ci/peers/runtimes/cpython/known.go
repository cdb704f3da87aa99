// SPDX-License-Identifier: Apache-2.0

package main

// knownClasses are differences whose cause is known, each by what shows it.
var knownClasses = []struct {
	name string
	is   func(c *comparison, want, have *thread, at int, isDump bool) bool
}{}
