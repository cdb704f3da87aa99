// SPDX-License-Identifier: Apache-2.0

package download

import (
	"errors"
	"io/fs"

	"github.com/unwindd/unwindd/engine/object"
)

// errAbsent says that a server does not have a file.
var errAbsent = errors.New("the server does not have it")

// errRedirect begins why a redirection is not followed.
var errRedirect = errors.New("the server redirects")

// A laterError says that an answer did not come, or not whole: it may the next time.
type laterError struct {
	error
	isSilent bool // the server could not be reached, or said too little in its time
}

func (e *laterError) Unwrap() error { return e.error }

// A WrongError says that a file is not the one that was asked for.
type WrongError struct{ Err error }

func (e WrongError) Error() string { return e.Err.Error() }

func (e WrongError) Unwrap() error { return e.Err }

// kindOf says of what kind the reason is that a file was not taken for.
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

// WithoutPath is an error without the path of the file, which has a name for a moment
// only.
func WithoutPath(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}
