// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/unwindd/unwindd/engine/report"
)

// messages is where everything that is said to the user is written.
var messages = report.NewLinePrinter(stderr)

// complain says what is wrong: errors that were joined on a line each.
func complain(err error) {
	for _, one := range joined(err) {
		messages.Printf("unwindd: %v\n", one)
	}
}

// joined are the errors that errors.Join made one of. In the text of a single
// error a line break is foreign, and is escaped.
func joined(err error) []error {
	list, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	texts := make([]string, 0, 2)
	var all []error
	for _, one := range list.Unwrap() {
		texts = append(texts, one.Error())
		all = append(all, joined(one)...)
	}
	if strings.Join(texts, "\n") != err.Error() {
		return []error{err}
	}
	return all
}

// A messageWriter writes lines that something else has made, each by one Write.
type messageWriter struct{}

// Write implements io.Writer.
func (messageWriter) Write(line []byte) (int, error) {
	messages.Printf("%s\n", strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}
