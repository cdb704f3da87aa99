// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"sync"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// examinee is a plugin whose process is restarted after it has ended. A call that the process did
// not survive returns an archtest.ProcessError.
type examinee struct {
	sdk.Architecture // makes its calls by call
	options          plugin.ProbeOptions

	mu       sync.Mutex
	probe    *plugin.Probe // nil if no process runs
	isFailed bool          // the process could not be restarted
}

func newExaminee(o plugin.ProbeOptions) *examinee {
	e := &examinee{options: o}
	e.Architecture = architecture(e.call)
	return e
}

// running returns the process, which it starts if there is none.
func (e *examinee) running(ctx context.Context) (*plugin.Probe, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.probe != nil {
		select {
		case <-e.probe.Exited():
			e.probe.Close()
			e.probe = nil
		default:
			return e.probe, nil
		}
	}
	if e.isFailed {
		return nil, &archtest.ProcessError{How: "could not be started again"}
	}
	p, err := plugin.StartProbe(ctx, e.options)
	if err != nil {
		if ctx.Err() == nil {
			e.isFailed = true
		}
		return nil, &archtest.ProcessError{How: err.Error()}
	}
	e.probe = p
	return p, nil
}

// rest ends the process; the next call starts another.
func (e *examinee) rest() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.probe != nil {
		e.probe.Close()
		e.probe = nil
	}
}

func (e *examinee) close() { e.rest() }

// call makes a call with the process.
func (e *examinee) call(ctx context.Context, f func(context.Context, sdk.Architecture) error) error {
	p, err := e.running(ctx)
	if err != nil {
		return err
	}
	err = p.Call(ctx, f)
	var gone *plugin.Gone
	if errors.As(err, &gone) {
		return &archtest.ProcessError{How: gone.How, IsLate: gone.IsLate}
	}
	return err
}
