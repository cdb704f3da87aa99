// SPDX-License-Identifier: Apache-2.0

package download

import (
	"errors"
	"io/fs"
	"net/url"

	"github.com/unwindd/unwindd/engine/object"
)

// errAbsent is the error of a server that does not have a file.
var errAbsent = errors.New("the server does not have it")

// errRedirect is wrapped by the errors of redirections that are not followed.
var errRedirect = errors.New("the server redirects")

// laterError is the error of an answer that did not come whole, and may come whole the next
// time.
type laterError struct {
	error
	isSilent bool // the server could not be reached, or sent too little in its time
}

func (e *laterError) Unwrap() error { return e.error }

// WrongError is the error of a file that is not the requested one.
type WrongError struct{ Err error }

func (e WrongError) Error() string { return e.Err.Error() }

func (e WrongError) Unwrap() error { return e.Err }

// kindOf returns the kind of reason for which a file was not taken.
func kindOf(err error) object.AttemptKind {
	var wrong WrongError
	switch {
	case errors.Is(err, errAbsent):
		return object.Absent
	case errors.As(err, &wrong):
		return object.Mismatched
	}
	return object.Unreadable
}

// WithoutPath removes the path of the file from an error: the file has that name for a
// moment only.
func WithoutPath(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// WithoutURL removes the URL, which may have a password, from an error about it.
func WithoutURL(err error) error {
	if e := (*url.Error)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}
