// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/sdk"
)

// ErrNoRuntime is wrapped by the errors of lookups that found no language runtime.
var ErrNoRuntime = errors.New("no language runtime")

// Runtime is one language runtime, wherever its plugin runs, as Arch is one architecture.
// It has the calls of sdk.Runtime. Answers are validated, except rows and registers, which
// need an architecture: see sdk.CodeRules.ValidateRows and
// sdk.ManagedThreadsAnswer.ValidateRegisters.
type Runtime struct {
	caller
	desc *sdk.RuntimeDescription
}

// Name is the runtime's name, the `runtime` of the output.
func (r *Runtime) Name() string { return r.desc.Name }

// Description has the constant properties of the runtime. It must not be changed.
func (r *Runtime) Description() *sdk.RuntimeDescription { return r.desc }

// OpenRuntime examines the runtime in a module of a target.
func (r *Runtime) OpenRuntime(ctx context.Context, e sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	return ask(ctx, &r.caller, r.desc, "OpenRuntime", req, func(ctx context.Context, p peer) (*sdk.OpenRuntimeAnswer, error) {
		return sdk.WithRuntimeBase(p.runtime).OpenRuntime(ctx, e, req)
	})
}

// CodeRules asks for the rows and functions of code that the runtime made.
func (r *Runtime) CodeRules(ctx context.Context, e sdk.RuntimeEngine, req *sdk.CodeRulesRequest) (*sdk.CodeRulesAnswer, error) {
	return ask(ctx, &r.caller, r.desc, "CodeRules", req, func(ctx context.Context, p peer) (*sdk.CodeRulesAnswer, error) {
		return sdk.WithRuntimeBase(p.runtime).CodeRules(ctx, e, req)
	})
}

// ManagedFrames asks for the frames of the language in native stacks.
func (r *Runtime) ManagedFrames(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	return ask(ctx, &r.caller, r.desc, "ManagedFrames", req, func(ctx context.Context, p peer) (*sdk.ManagedFramesAnswer, error) {
		return sdk.WithRuntimeBase(p.runtime).ManagedFrames(ctx, e, req)
	})
}

// ManagedThreads asks for the threads that the runtime schedules.
func (r *Runtime) ManagedThreads(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
	return ask(ctx, &r.caller, r.desc, "ManagedThreads", req, func(ctx context.Context, p peer) (*sdk.ManagedThreadsAnswer, error) {
		return sdk.WithRuntimeBase(p.runtime).ManagedThreads(ctx, e, req)
	})
}

// Runtimes returns all runtimes that can be used, in the order of List; vendors' plugins
// that were never described are started for it.
func (m *Manager) Runtimes() []*Runtime {
	var list []*Runtime
	all, _ := m.find(runtimes)
	for _, f := range all {
		if f.check() == nil {
			list = append(list, f.runtime)
		}
	}
	return list
}

// FindRuntime returns the language runtime of a name: its description's or else its plugin's. The
// error of one that cannot be used says why; where there is none, it wraps ErrNoRuntime and names the runtimes that there are.
func (m *Manager) FindRuntime(name string) (*Runtime, error) {
	list := m.Runtimes()
	for _, is := range []func(*Runtime) bool{
		func(r *Runtime) bool { return r.Name() == name },
		func(r *Runtime) bool { return r.plugin == name },
	} {
		for _, r := range list { // the first one counts, as in stacks
			if is(r) {
				return r, nil
			}
		}
	}
	for _, p := range m.plugins {
		if p.kind != runtimes || p.name != name {
			continue
		}
		f, err := p.find()
		if err == nil {
			err = f.check()
		}
		if err != nil {
			return nil, err
		}
	}
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = r.Name()
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w %q: there is no plugin of one", ErrNoRuntime, clip(name))
	}
	return nil, fmt.Errorf("%w %q, expected one of %s", ErrNoRuntime, clip(name), strings.Join(names, ", "))
}

// ForRuntime returns the architecture of the module that a request is about.
func (m *Manager) ForRuntime(req *sdk.OpenRuntimeRequest) (*Arch, error) {
	machine := object.ELFMachine{Number: req.Machine, Data: elf.ELFDATA2LSB}
	if req.ByteOrder == sdk.BigEndian {
		machine.Data = elf.ELFDATA2MSB
	}
	return m.ForMachine(machine)
}
