// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine/service/job"
)

// Failure is why a request was not answered.
type Failure struct {
	Kind   Kind
	Detail string // a sentence
}

func (f *Failure) Error() string { return f.Detail }

// Kind says whose a failure is.
type Kind string

// The kinds.
const (
	Usage    Kind = "usage"     // what was asked for has no meaning
	Input    Kind = "input"     // what was sent could not be read
	Absent   Kind = "absent"    // nobody has the file that was asked about
	Canceled Kind = "canceled"  // nobody wants the answer any more
	TimedOut Kind = "timed-out" // it took longer than it may
	TooLarge Kind = "too-large" // the answer is larger than it may be
	NoRoom   Kind = "no-room"   // a disk is full
	Crashed  Kind = "crashed"   // the worker died, for lack of memory for one
)

// failureOf is the failure that an error of a job is.
func failureOf(ctx context.Context, err error) *Failure {
	if err == nil {
		return nil
	}
	f := &Failure{Kind: Input, Detail: err.Error()}
	switch {
	case ctx.Err() != nil:
		f.Kind = Canceled
	case errors.Is(err, job.ErrUsage):
		f.Kind = Usage
	case errors.Is(err, job.ErrNoObject):
		f.Kind = Absent
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		f.Kind = NoRoom
	case errors.Is(err, unix.EFBIG), errors.Is(err, os.ErrClosed), errors.Is(err, unix.EPIPE):
		f.Kind = TooLarge // the server stopped to take it
	}
	return f
}
