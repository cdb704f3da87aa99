// SPDX-License-Identifier: Apache-2.0

// Package ruby is the plugin of CRuby 2.7 to 3.4: it reads the frames of Ruby in native stacks.
//
// The interpreter keeps a control frame for each call of Ruby, and for each method that is
// written in C. Its layout is not described in the process, so it is known by the version. What
// was read by it is checked against itself: a thread names its VM and its execution context, and
// that the thread.
package ruby

import (
	"context"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// New returns the runtime.
func New() sdk.Runtime { return &plugin{} }

// The indices of Symbols in the description.
const (
	symbolVersion = iota
	symbolVM
	symbolAtExit
	symbolException
)

// Description returns the description of CRuby.
func Description() *sdk.RuntimeDescription {
	return &sdk.RuntimeDescription{
		Name: "ruby", Version: "1", ThreadKind: "fiber",
		Recognises: []sdk.RuntimeRecogniser{{Symbol: "ruby_vm_at_exit"}},
		Symbols: []string{
			symbolVersion: "ruby_version", symbolVM: "ruby_current_vm_ptr", symbolAtExit: "ruby_vm_at_exit",
			symbolException: "rb_eException",
		},
	}
}

// plugin implements sdk.Runtime.
type plugin struct {
	sdk.RuntimeBase

	known sdk.ByHandle[*process]
}

// process is Ruby in a module of a process.
type process struct {
	*layout
	request *sdk.OpenRuntimeRequest
	vm      uint64 // address of the VM
	names   uint64 // address of the table of names; 0: unknown
	code    *functions
}

// Describe implements sdk.Runtime.
func (*plugin) Describe(context.Context) (*sdk.RuntimeDescription, error) { return Description(), nil }

// OpenRuntime finds the VM of the process.
func (p *plugin) OpenRuntime(ctx context.Context, e sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	g := &process{request: req}
	answer := &sdk.OpenRuntimeAnswer{}
	if len(req.Symbols) != len(Description().Symbols) {
		return answer, nil
	}
	r := newReader(ctx, e, g)
	err := r.open(answer)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		answer.Problems = append(answer.Problems, err.Error())
		return answer, nil
	}
	answer.HasFrames, answer.HasThreads = true, true
	p.known.Put(req.Runtime, g)
	return answer, nil
}

// open finds the version, the layout of it, the VM, and its table of names.
func (r *reader) open(answer *sdk.OpenRuntimeAnswer) error {
	version, err := r.version()
	answer.Version = version
	if err != nil {
		return err
	}
	if r.layout = layoutOf(version); r.layout == nil || !strings.HasPrefix(version, r.layout.version) {
		return fmt.Errorf("Ruby %s: its frames are not read: the layouts of %s are known", version, knownVersions())
	}
	if r.request.AddressBits != 64 || r.request.Machine != machineX8664 {
		return fmt.Errorf("Ruby %s: its frames are not read: layouts of 64-bit x86 are known, the machine is %d", version, r.request.Machine)
	}
	if r.vm, err = r.findVM(); err != nil {
		return fmt.Errorf("Ruby %s: its frames are not read: %w", version, err)
	}
	if r.names, err = r.findNames(); err != nil {
		answer.Problems = append(answer.Problems, "methods that are written in C have no names: "+err.Error())
	}
	r.code = r.findFunctions()
	return nil
}

// machineX8664 is e_machine of 64-bit x86.
const machineX8664 = 62

// knownVersions lists the versions whose layouts are known.
func knownVersions() string {
	var list []string
	for i := range layouts {
		list = append(list, layouts[i].version)
	}
	return strings.Join(list, ", ")
}

// ManagedFrames finds the frames of Ruby in native stacks.
func (p *plugin) ManagedFrames(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	g, isOpen := p.known.Get(req.Runtime)
	if !isOpen {
		return nil, sdk.ErrObjectNotOpen
	}
	r := newReader(ctx, e, g)
	answer := &sdk.ManagedFramesAnswer{Stacks: make([]sdk.ManagedStack, len(req.Threads))}
	threads, err := r.readThreads()
	r.readStacks(threads, err, req, answer.Stacks)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return answer, nil
}
