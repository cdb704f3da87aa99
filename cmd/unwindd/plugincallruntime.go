// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/cmd/unwindd/internal/verify"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/sdk"
)

// runtimeModules are the modules of a target that have a language runtime, for calls of it.
type runtimeModules struct {
	*verify.RuntimeTarget
	description *sdk.RuntimeDescription
	runtime     sdk.Runtime
	plugins     *plugin.Manager // has the architectures
}

// callRuntime makes a call of a language runtime.
func (f *pluginCallFlags) callRuntime(ctx context.Context, method *callMethod, args []string) (exchange, error) {
	o, err := f.plugins()
	if err != nil {
		return exchange{}, noPlugin{err}
	}
	m, err := plugin.NewManager(o)
	if err != nil {
		return exchange{}, noPlugin{f.ofSetting(err)}
	}
	defer m.Close()
	p, err := f.probeRuntime(ctx, &o, m, args)
	if err != nil {
		return exchange{}, noPlugin{err}
	}
	defer p.Close()
	r := &runtimeModules{runtime: verify.Runtime(p), plugins: m}
	if r.description, err = r.runtime.Describe(ctx); err != nil {
		return exchange{}, err
	}
	if r.description == nil {
		return exchange{}, errors.New("there is no description")
	}
	problem := r.description.Validate()
	if method.subject == aboutNothing {
		return exchange{&struct{}{}, r.description, problem}, nil
	}
	if problem != nil {
		return exchange{}, problem
	}
	if r.RuntimeTarget, err = verify.OpenRuntimes(ctx, r.runtime, r.description, o, args[0]); err != nil {
		return exchange{}, err
	}
	defer r.Close()
	if err := ctx.Err(); err != nil {
		return exchange{}, err
	}
	if len(r.Modules) == 0 {
		return exchange{}, fmt.Errorf("%s: no module has the language runtime %s: it recognises %s", args[0], r.description.Name, strings.Join(recognisesModules(r.description), ", "))
	}
	return method.make(ctx, &pluginCall{args: args, modules: r})
}

// probeRuntime starts the plugin of a language runtime.
func (f *pluginCallFlags) probeRuntime(ctx context.Context, o *plugin.Options, m *plugin.Manager, args []string) (*plugin.Probe, error) {
	name := f.runtime
	if strings.ContainsRune(name, '/') {
		if !strings.HasPrefix(filepath.Base(name), sdk.RuntimePrefix) {
			return nil, fmt.Errorf("--runtime %s: expected an executable that is named %sNAME", name, sdk.RuntimePrefix)
		}
		name = plugin.NameOf(name)
		if _, isAttached := o.Attached[name]; !isAttached {
			return plugin.StartProbe(ctx, plugin.ProbeOptions{Self: o.Self, Build: o.Build, Path: f.runtime, Logger: o.Logger})
		}
	}
	if name == "" {
		var descriptions []*sdk.RuntimeDescription
		all := m.Runtimes()
		for _, r := range all {
			descriptions = append(descriptions, r.Description())
		}
		i, err := verify.RuntimeOf(ctx, descriptions, *o, args[0])
		if err != nil {
			return nil, err
		}
		name = all[i].Name()
	}
	return m.ProbeRuntime(ctx, name)
}

// opened validates the answer about a module.
func (r *runtimeModules) opened(m *verify.RuntimeOpened) (exchange, error) {
	return checked(m.Request, m.Answer, m.Err, func(a *sdk.OpenRuntimeAnswer) error { return a.Validate(r.description, m.Request) })
}

// with returns the first module whose answer has something, called what in an error.
func (r *runtimeModules) with(what string, has func(*sdk.OpenRuntimeAnswer) bool) (*verify.RuntimeOpened, error) {
	for _, m := range r.Modules {
		o, err := r.opened(m)
		if err == nil {
			err = o.problem
		}
		if err != nil {
			return nil, fmt.Errorf("OpenRuntime of %s: %w", m.Request.Path, err)
		}
		if has(m.Answer) {
			return m, nil
		}
	}
	return nil, fmt.Errorf("unwindd does not ask: what OpenRuntime answers about %s has no %s", r.Modules[0].Request.Path, what)
}

// refused returns what the engine says of the runtime beyond the problems that the plugin told.
func (r *runtimeModules) refused(m *verify.RuntimeOpened, told ...string) error {
	var errs []error
	for _, p := range r.Problems() {
		text, ok := strings.CutPrefix(p, m.Request.Path+": ")
		if ok && !slices.Contains(m.Answer.Problems, text) && !slices.ContainsFunc(told, func(t string) bool { return strings.HasSuffix(text, ": "+t) }) {
			errs = append(errs, errors.New(text))
		}
	}
	return errors.Join(errs...)
}

func callOpenRuntime(_ context.Context, c *pluginCall) (exchange, error) {
	r := c.modules
	m := r.Modules[0]
	if len(c.args) > 1 {
		var paths []string
		i := slices.IndexFunc(r.Modules, func(m *verify.RuntimeOpened) bool {
			paths = append(paths, m.Request.Path)
			return m.Request.Path == c.args[1] || path.Base(m.Request.Path) == c.args[1]
		})
		if i < 0 {
			return exchange{}, fmt.Errorf("%s: %s is no module with the language runtime %s, expected %s", c.args[0], c.args[1], r.description.Name, strings.Join(paths, ", "))
		}
		m = r.Modules[i]
	}
	o, err := r.opened(m)
	if err == nil && o.problem == nil {
		o.problem = r.refused(m)
	}
	return o, err
}

func callCodeRules(ctx context.Context, c *pluginCall) (exchange, error) {
	r, req := c.modules, &sdk.CodeRulesRequest{}
	for _, arg := range c.args[1:] {
		pc, err := strconv.ParseUint(strings.TrimPrefix(arg, "0x"), 16, 64)
		if err != nil {
			return exchange{}, fmt.Errorf("%q is no address in hex", arg)
		}
		req.PCs = append(req.PCs, pc)
	}
	m, err := r.with(fmt.Sprintf("Code with %#x", req.PCs[0]), func(a *sdk.OpenRuntimeAnswer) bool { return isInCode(a, req.PCs[0]) })
	if err != nil {
		return exchange{}, err
	}
	for _, pc := range req.PCs {
		if !isInCode(m.Answer, pc) {
			return exchange{}, fmt.Errorf("unwindd does not ask: what OpenRuntime answers about %s has no Code with %#x", m.Request.Path, pc)
		}
	}
	req.Runtime = m.Request.Runtime
	a, err := r.runtime.CodeRules(ctx, m.Engine, req)
	return checked(req, a, err, func(a *sdk.CodeRulesAnswer) error { return r.checkRules(m, req, a) })
}

// isInCode reports whether an address is in code that a runtime made.
func isInCode(a *sdk.OpenRuntimeAnswer, address uint64) bool {
	return slices.ContainsFunc(a.Code, func(c sdk.RuntimeCode) bool { return c.Start <= address && address < c.End })
}

// checkRules validates an answer of CodeRules.
func (r *runtimeModules) checkRules(m *verify.RuntimeOpened, req *sdk.CodeRulesRequest, a *sdk.CodeRulesAnswer) error {
	if err := a.Validate(r.description, req); err != nil {
		return err
	}
	d, err := r.architecture(m)
	if err != nil {
		return err
	}
	for i := range a.Code {
		f := &a.Code[i]
		if f.Start == 0 && f.End == 0 {
			continue
		}
		if !isInCode(m.Answer, f.Start) || !isInCode(m.Answer, f.End-1) {
			return fmt.Errorf("the function at %#x is from %#x to %#x: expected one in the code of OpenRuntime's answer", req.PCs[i], f.Start, f.End)
		}
		if err := f.ValidateRows(d); err != nil {
			return fmt.Errorf("the function at %#x: %w", req.PCs[i], err)
		}
	}
	return nil
}

// architecture returns the description of a module's architecture.
func (r *runtimeModules) architecture(m *verify.RuntimeOpened) (*sdk.Description, error) {
	a, err := r.plugins.ForRuntime(m.Request)
	if err != nil {
		return nil, err
	}
	return a.Description(), nil
}

func callManagedFrames(ctx context.Context, c *pluginCall) (exchange, error) {
	r := c.modules
	if _, err := r.with("HasFrames", func(a *sdk.OpenRuntimeAnswer) bool { return a.HasFrames }); err != nil {
		return exchange{}, err
	}
	f, err := r.Frames(ctx, c.args[1:])
	switch {
	case err != nil:
		return exchange{}, fmt.Errorf("%s: %w", c.args[0], err)
	case f == nil:
		return exchange{}, fmt.Errorf("%s: unwindd does not ask: no such thread is among the Threads of OpenRuntime's answer, with registers of the module's architecture", c.args[0])
	}
	return checked(f.Request, f.Answer, f.Err, func(a *sdk.ManagedFramesAnswer) error {
		if err := a.Validate(r.description, f.Request); err != nil {
			return err
		}
		var told []string
		for i := range a.Stacks {
			told = append(told, a.Stacks[i].Problem)
		}
		return r.refused(r.module(f.Request.Runtime), told...)
	})
}

// module returns the module of a handle, which is there.
func (r *runtimeModules) module(handle uint64) *verify.RuntimeOpened {
	return r.Modules[slices.IndexFunc(r.Modules, func(m *verify.RuntimeOpened) bool { return m.Request.Runtime == handle })]
}

func callManagedThreads(ctx context.Context, c *pluginCall) (exchange, error) {
	r := c.modules
	if _, err := r.with("HasThreads", func(a *sdk.OpenRuntimeAnswer) bool { return a.HasThreads }); err != nil {
		return exchange{}, err
	}
	t, err := r.Threads(ctx)
	switch {
	case err != nil:
		return exchange{}, err
	case t == nil:
		return exchange{}, fmt.Errorf("%s: unwindd did not ask: %s", c.args[0], strings.Join(r.Problems(), "; "))
	}
	return checked(t.Request, t.Answer, t.Err, func(a *sdk.ManagedThreadsAnswer) error {
		if err := a.Validate(r.description, t.Request); err != nil {
			return err
		}
		d, err := r.architecture(r.module(t.Request.Runtime))
		if err != nil {
			return err
		}
		return a.ValidateRegisters(d)
	})
}
