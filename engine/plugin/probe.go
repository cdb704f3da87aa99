// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/unwindd/unwindd/internal/confine"
	"github.com/unwindd/unwindd/sdk"
)

// ProbeOptions has the plugin that is examined, and its limits. A limit of 0 is the
// plugins' default.
type ProbeOptions struct {
	Self   string // the unwindd executable that confines the process
	Build  string // that Self must have; "": any
	Path   string // the plugin's executable
	Logger hclog.Logger
	// StartDeadline and CallDeadline are processor time, as in Options.
	StartDeadline, CallDeadline time.Duration
	Memory                      uint64 // bytes that it may have
}

// Probe is one process of a plugin under examination. It is started and confined as
// others are; but its answers are not validated, no call is repeated, and it is not
// restarted.
type Probe struct {
	peer     peer
	process  *process    // nil: the plugin is in this process, or in attached
	attached *attachment // nil: the process was started for the probe
	limit    deadline    // of a call
}

// Gone is the error of a call that the process did not survive.
type Gone struct {
	// How is how the process ended, "exited with status 3", or, if IsLate, the time that
	// the call had used when the process was killed for it: "5s of processor time".
	How    string
	IsLate bool
}

func (g *Gone) Error() string {
	if g.IsLate {
		return "no answer within " + g.How
	}
	return "its process " + g.How
}

// StartProbe starts a vendor's executable. The error tells the user why there is no
// process; no call is made yet.
func StartProbe(ctx context.Context, o ProbeOptions) (*Probe, error) {
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, err
	}
	name := NameOf(path)
	c := examine(cmp.Or(name, "plugin"), path)
	if c.problem != "" {
		return nil, errors.New(c.problem)
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	l := &launch{
		name: c.name, self: o.Self, build: o.Build, command: []string{c.path}, isThis: isThisExecutable(o.Self),
		memory: cmp.Or(o.Memory, confine.DataLimit), limit: deadlineOf(cmp.Or(o.StartDeadline, DefaultStartDeadline)), logger: o.Logger.Named(c.name),
		data: c.data,
	}
	return l.probe(ctx, deadlineOf(cmp.Or(o.CallDeadline, DefaultCallDeadline)))
}

// NameOf is NAME of an executable unwindd-arch-NAME or unwindd-runtime-NAME; "" for another
// name, which is not found as a plugin.
func NameOf(path string) string {
	k, name := kindOf(filepath.Base(path))
	if k == nil || !isValidName(name) {
		return ""
	}
	return name
}

// Probe starts a process of the plugin, or of the architecture, of a name.
func (m *Manager) Probe(ctx context.Context, name string) (*Probe, error) {
	a, err := m.Find(name)
	if err != nil {
		return nil, err
	}
	return a.probe(ctx)
}

// ProbeRuntime starts a process of the language runtime, or of the plugin, of a name.
func (m *Manager) ProbeRuntime(ctx context.Context, name string) (*Probe, error) {
	r, err := m.FindRuntime(name)
	if err != nil {
		return nil, err
	}
	return r.probe(ctx)
}

// probe starts a process of the plugin.
func (c *caller) probe(ctx context.Context) (*Probe, error) {
	switch t := c.transport.(type) {
	case *supervisor:
		l := t.launch
		return l.probe(ctx, t.callLimit)
	case *inProcess:
		return &Probe{peer: t.peer}, nil
	case *attached:
		own, err := attach(t.where) // the Manager's connection ends with the Manager
		if err != nil {
			return nil, err
		}
		return &Probe{peer: own.peer, attached: own}, nil
	}
	return nil, fmt.Errorf("plugin %s: it has no process that could be started", c.plugin)
}

func (l *launch) probe(ctx context.Context, calls deadline) (*Probe, error) {
	c := newChild(l.memory)
	limited, release := l.limit.limit(ctx, c.processorTime)
	defer release()
	p, err := l.start(limited, c)
	if err != nil {
		return nil, err
	}
	return &Probe{peer: p.peer, process: p, limit: calls}, nil
}

// Call makes one call to an architecture with the deadline of calls. The error is f's, or a
// *Gone: the process has ended, or was killed because it did not answer in time.
func (p *Probe) Call(ctx context.Context, f func(context.Context, sdk.Architecture) error) error {
	return p.call(ctx, func(ctx context.Context, with peer) error { return f(ctx, with.arch) })
}

// CallRuntime makes one call to a language runtime, as Call does.
func (p *Probe) CallRuntime(ctx context.Context, f func(context.Context, sdk.Runtime) error) error {
	return p.call(ctx, func(ctx context.Context, with peer) error { return f(ctx, with.runtime) })
}

func (p *Probe) call(ctx context.Context, f func(context.Context, peer) error) error {
	if p.process == nil {
		return f(ctx, p.peer)
	}
	clock := &p.process.clock
	limited, release := p.limit.limit(ctx, clock.begin())
	defer clock.end()
	defer release()
	err := f(limited, p.peer)
	child := p.process.child
	switch {
	case err == nil:
		return nil
	case status.Code(err) == codes.Unavailable && limited.Err() == nil && !child.waitExit(deathGrace):
		_ = child.Kill(ctx)
		<-child.exited
		return &Gone{How: "closed its connection and was killed"}
	case p.process.hasExited():
		return &Gone{How: p.Died()}
	case !isLate(ctx, err) && isLate(limited, err): // servers also end calls a moment before their deadlines
		took := p.limit.passed(limited)
		_ = child.Kill(ctx)
		<-child.exited
		return &Gone{How: took, IsLate: true}
	}
	return err
}

// PID is the id of the process; 0: it has no process of its own.
func (p *Probe) PID() int {
	if p.process == nil {
		return 0
	}
	return p.process.child.PID()
}

// Exited is closed when the process has ended; nil where it has none of its own.
func (p *Probe) Exited() <-chan struct{} {
	if p.process == nil {
		return nil
	}
	return p.process.child.exited
}

// Died describes the end of the process, with its last output. It may be called when
// Exited is closed.
func (p *Probe) Died() string {
	how := p.process.died()
	if p.process.log.crashed() == "" {
		how += p.process.lastWords()
	}
	return how
}

// ProcessorTime is the processor time that the process has used. Not every system tells
// it.
func (p *Probe) ProcessorTime() (time.Duration, error) {
	if p.process == nil {
		return 0, errors.ErrUnsupported
	}
	return p.process.child.processorTime()
}

// IsRunnable reports whether the process runs, or waits for a processor: on a busy
// machine it may use none for a while. It is false where the system does not tell.
func (p *Probe) IsRunnable() bool {
	return p.process != nil && isRunnable(p.PID())
}

// Memory is the number of bytes of the process's private memory; 0 where the system does
// not tell.
func (p *Probe) Memory() uint64 {
	if p.process == nil {
		return 0
	}
	return ResidentMemory(p.PID())
}

// Family lists the processes that the process has started, and their children, as far as
// the system tells.
func (p *Probe) Family() []int {
	if p.process == nil {
		return nil
	}
	return processesOf(p.PID())
}

// Disconnect ends the connection without notice, as the death of an engine does.
func (p *Probe) Disconnect() {
	if p.process != nil {
		if c := p.process.conn.Load(); c != nil {
			c.Close()
		}
	}
}

// Close ends the process and everything around it.
func (p *Probe) Close() {
	if p.process != nil {
		p.process.stop()
	}
	if p.attached != nil {
		p.attached.close()
	}
}
