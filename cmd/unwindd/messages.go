// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/unwindd/unwindd/engine/report"
)

// messages prints all messages to the user.
var messages = report.NewLinePrinter(stderr)

// complain prints an error; joined ones have a line each.
func complain(err error) {
	for _, one := range joined(err) {
		messages.Printf("unwindd: %v\n", one)
	}
}

// joined returns the errors that errors.Join has joined. A line break in the text of a
// single error is foreign, and is escaped.
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

// messageWriter prints each Write as a message.
type messageWriter struct{}

// Write implements io.Writer.
func (messageWriter) Write(line []byte) (int, error) {
	messages.Printf("%s\n", strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}
