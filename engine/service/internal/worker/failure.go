// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/unwindd/unwindd/engine/service/job"
)

// Failure is the reason why a request was not answered.
type Failure struct {
	Kind   Kind
	Detail string // a sentence
}

func (f *Failure) Error() string { return f.Detail }

// Kind is the kind of a failure.
type Kind string

// The kinds.
const (
	Usage    Kind = "usage"     // the request has no meaning
	Input    Kind = "input"     // the file that was sent cannot be read
	Absent   Kind = "absent"    // the requested file is not known
	Canceled Kind = "canceled"  // the caller has gone
	TimedOut Kind = "timed-out" // it took longer than it may
	TooLarge Kind = "too-large" // the answer is larger than it may be
	NoRoom   Kind = "no-room"   // a disk is full
	Crashed  Kind = "crashed"   // the worker died, for example for lack of memory
)

// failureOf turns an error of a job into a failure.
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
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		f.Kind = NoRoom
	case errors.Is(err, syscall.EFBIG), errors.Is(err, os.ErrClosed), errors.Is(err, syscall.EPIPE):
		f.Kind = TooLarge // the server stopped reading it
	}
	return f
}
