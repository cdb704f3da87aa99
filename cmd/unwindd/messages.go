// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/unwindd/unwindd/engine/report"
)

// messages prints all messages to the user.
var messages = report.NewLinePrinter(stderr)

// complain prints an error; joined ones have a line each.
func complain(err error) {
	for _, one := range joined(err) {
		messages.Printf("unwindd: %s\n", plain(one))
	}
}

// plain is the text of an error without the names of system calls, and with the file that was
// probably meant where one does not exist.
func plain(err error) string {
	text := err.Error()
	var failed *fs.PathError
	if !errors.As(err, &failed) {
		return text
	}
	text = strings.Replace(text, failed.Op+" "+failed.Path+": ", failed.Path+": ", 1)
	if errors.Is(failed, fs.ErrNotExist) {
		if meant := nearestFile(failed.Path); meant != "" {
			text += "; did you mean: " + meant
		}
	}
	return text
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
