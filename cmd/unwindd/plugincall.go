// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/cmd/unwindd/internal/verify"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// pluginCallFlags are the flags of `unwindd plugin call`.
type pluginCallFlags struct {
	*globals
	arch    string
	runtime string
	request bool
}

func newPluginCall(g *globals) *cobra.Command {
	f := &pluginCallFlags{globals: g}
	cmd := &cobra.Command{
		Use:   "call METHOD [ARGUMENT...]",
		Short: "Make one call of a plugin and print what it answers",
		Long: `Start a plugin, make one call of it and print the answer as JSON, as it came: members
have the names of package sdk, bytes are hex, and what is 0 or empty is left out. An
answer that unwindd would refuse is printed, and then what is wrong with it.

  Describe
  OpenTarget TARGET [OWNER]
  OpenObject FILE
  FrameRules FILE PLACE...
  ClassifyReturn FILE PLACE...
  Disassemble FILE PLACE
  BindThreads TARGET [THREAD...]
  Translate TARGET THREAD SPACE ADDRESS [LANE]

and of a language runtime:

  Describe --runtime NAME
  OpenRuntime TARGET [MODULE]
  CodeRules TARGET PC...
  ManagedFrames TARGET [THREAD...]
  ManagedThreads TARGET

A TARGET is a core, a minidump or a snapshot, of which the notes of an OWNER and the
threads of the IDs are asked about, or the module with the path or the name MODULE; a
PC is an address in code that the runtime made. A PLACE is a function of the code
object FILE, or an address in it, in hex.`,
		Example: `  unwindd plugin call FrameRules server main
  unwindd plugin call Disassemble server 0x1257 --arch x86_64
  unwindd plugin call OpenTarget gpu.core
  unwindd plugin call BindThreads crash.snapshot 4711
  unwindd plugin call Describe --arch ./unwindd-arch-mychip
  unwindd plugin call OpenRuntime app.core --runtime mylang --request
  unwindd plugin call ManagedFrames app.core 4711`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), args) },
	}
	cmd.Flags().StringVar(&f.arch, "arch", "", "call architecture `A`, or the plugin whose executable is at that path; the default is the one that recognises FILE, or reads TARGET")
	cmd.Flags().StringVar(&f.runtime, "runtime", "", "call the language runtime `NAME`, or the plugin whose executable is at that path; the default is the first one that a module of TARGET has")
	cmd.Flags().BoolVar(&f.request, "request", false, "print the request, too, before the answer")
	return cmd
}

// pluginCall is the state of a call.
type pluginCall struct {
	description *sdk.Description
	arch        sdk.Architecture
	args        []string
	target      *verify.Target   // of methods that are about a target
	object      *archtest.Object // of methods that are about a code object
	places      []sdk.CodeRange  // in it
	modules     *runtimeModules  // of methods of a language runtime
}

// callSubject is the subject of a method.
type callSubject uint8

const (
	aboutNothing callSubject = iota
	aboutObject              // the first argument is a code object, and others are places in it
	aboutTarget              // the first argument is a target
	aboutRuntime             // the first argument is a target, and the call is of a language runtime
)

// callMethod is a method that can be called by hand.
type callMethod struct {
	subject     callSubject
	arguments   []string // their names
	least, most int      // how many there are
	make        func(ctx context.Context, c *pluginCall) (exchange, error)
}

// exchange is a call that was made, with its answer.
type exchange struct {
	request any   // a pointer
	answer  any   // likewise
	problem error // why the answer would be refused; nil: it would not be
}

const anyNumber = 1 << 20 // of arguments

var callMethods = map[string]callMethod{
	"Describe":       {aboutNothing, nil, 0, 0, callDescribe},
	"OpenTarget":     {aboutTarget, []string{"TARGET, a core", "an OWNER of notes"}, 1, 2, callOpenTarget},
	"OpenObject":     {aboutObject, []string{"FILE, a code object"}, 1, 1, callOpenObject},
	"FrameRules":     {aboutObject, []string{"FILE, a code object", aPlace}, 2, anyNumber, callFrameRules},
	"BindThreads":    {aboutTarget, []string{aTarget, "a THREAD"}, 1, anyNumber, callBindThreads},
	"Translate":      {aboutTarget, []string{aTarget, "a THREAD", "an address SPACE", "an ADDRESS in it", "a LANE"}, 4, 5, callTranslate},
	"ClassifyReturn": {aboutObject, []string{"FILE, a code object", aPlace}, 2, anyNumber, callClassifyReturn},
	"Disassemble":    {aboutObject, []string{"FILE, a code object", aPlace}, 2, 2, callDisassemble},
	"OpenRuntime":    {aboutRuntime, []string{aTarget, "a MODULE"}, 1, 2, callOpenRuntime},
	"CodeRules":      {aboutRuntime, []string{aTarget, "a PC"}, 2, anyNumber, callCodeRules},
	"ManagedFrames":  {aboutRuntime, []string{aTarget, "a THREAD"}, 1, anyNumber, callManagedFrames},
	"ManagedThreads": {aboutRuntime, []string{aTarget}, 1, 1, callManagedThreads},
}

const (
	aPlace  = "a FUNCTION or an ADDRESS"
	aTarget = "TARGET, a core, a minidump or a snapshot"
)

// checked returns a call with the validation of its answer.
func checked[R, A any](req *R, answer *A, err error, validate func(*A) error) (exchange, error) {
	if err != nil {
		return exchange{}, err
	}
	if answer == nil {
		return exchange{}, errors.New("there is neither an answer nor an error")
	}
	return exchange{req, answer, validate(answer)}, nil
}

func callDescribe(_ context.Context, c *pluginCall) (exchange, error) {
	return exchange{&struct{}{}, c.description, c.description.Validate()}, nil
}

func callOpenTarget(ctx context.Context, c *pluginCall) (exchange, error) {
	if len(c.target.Requests) == 0 {
		return exchange{}, fmt.Errorf("%s: it has no notes of which architecture %s says that they are its own", c.args[0], c.description.Name)
	}
	req := c.target.Requests[0]
	if len(c.args) > 1 {
		var owners []string
		found := slices.IndexFunc(c.target.Requests, func(r *sdk.OpenTargetRequest) bool {
			if len(r.Notes) == 0 {
				return false // of a core of sections
			}
			owners = append(owners, r.Notes[0].Owner)
			return r.Notes[0].Owner == c.args[1]
		})
		if found < 0 {
			return exchange{}, fmt.Errorf("%s: no notes of %q for architecture %s, expected %s", c.args[0], c.args[1], c.description.Name, strings.Join(owners, ", "))
		}
		req = c.target.Requests[found]
	}
	a, err := c.arch.OpenTarget(ctx, c.target.Engine, req)
	return checked(req, a, err, func(a *sdk.OpenTargetAnswer) error { return a.Validate(c.description, req) })
}

func callOpenObject(ctx context.Context, c *pluginCall) (exchange, error) {
	a, err := c.arch.OpenObject(ctx, c.engine(), &c.object.Request)
	return checked(&c.object.Request, a, err, func(a *sdk.OpenObjectAnswer) error { return a.Validate(c.description, &c.object.Request) })
}

func callFrameRules(ctx context.Context, c *pluginCall) (exchange, error) {
	// The plugin may rely on having seen the object.
	if _, err := c.arch.OpenObject(ctx, c.engine(), &c.object.Request); err != nil {
		return exchange{}, err
	}
	req := &sdk.FrameRulesRequest{Object: c.object.Request.Object, Functions: c.places}
	a, err := c.arch.FrameRules(ctx, c.engine(), req)
	return checked(req, a, err, func(a *sdk.FrameRulesAnswer) error { return a.Validate(c.description, req) })
}

// bound makes the call of BindThreads about threads, by their IDs; without IDs about all.
func (c *pluginCall) bound(ctx context.Context, ids []string) (req *sdk.BindThreadsRequest, a *sdk.BindThreadsAnswer, err error) {
	req = &sdk.BindThreadsRequest{Threads: c.target.Threads}
	if len(ids) > 0 {
		req.Threads = nil
	}
	for _, id := range ids {
		i := slices.Index(c.target.IDs, id)
		if i < 0 {
			return nil, nil, fmt.Errorf("%s: no thread %s of architecture %s with registers", c.args[0], id, c.description.Name)
		}
		req.Threads = append(req.Threads, c.target.Threads[i])
	}
	if len(req.Threads) == 0 {
		return nil, nil, fmt.Errorf("%s: no thread of architecture %s with registers", c.args[0], c.description.Name)
	}
	a, err = sdk.BindThreads(ctx, c.arch, c.target.Engine, req)
	return req, a, err
}

func callBindThreads(ctx context.Context, c *pluginCall) (exchange, error) {
	req, a, err := c.bound(ctx, c.args[1:])
	return checked(req, a, err, func(a *sdk.BindThreadsAnswer) error { return a.Validate(c.description, req) })
}

func callTranslate(ctx context.Context, c *pluginCall) (exchange, error) {
	req := &sdk.TranslateRequest{Lane: -1}
	var err error
	var ok bool
	if req.Space, ok = c.description.Names(0).Space(c.args[2]); !ok {
		number, err := strconv.ParseUint(c.args[2], 10, 64)
		if err != nil {
			return exchange{}, fmt.Errorf("%q is neither the name nor the number of an address space of architecture %s", c.args[2], c.description.Name)
		}
		req.Space = locexpr.AddressSpace(number)
	}
	if req.Address, err = strconv.ParseUint(strings.TrimPrefix(c.args[3], "0x"), 16, 64); err != nil {
		return exchange{}, fmt.Errorf("%q is no address in hex", c.args[3])
	}
	if len(c.args) > 4 {
		lane, err := strconv.ParseUint(c.args[4], 10, 31)
		if err != nil {
			return exchange{}, fmt.Errorf("%q is no lane, expected a number from 0 on", c.args[4])
		}
		req.Lane = int32(lane) //nolint:gosec // of 31 bits
	}
	bind, _, err := c.bound(ctx, c.args[1:2]) // the plugin may rely on having bound the thread
	if err != nil {
		return exchange{}, err
	}
	req.Thread = bind.Threads[0].Thread
	a, err := c.arch.Translate(ctx, c.target.Engine, req)
	return checked(req, a, err, func(a *sdk.TranslateAnswer) error { return a.Validate(c.description, req) })
}

func callClassifyReturn(ctx context.Context, c *pluginCall) (exchange, error) {
	req := &sdk.ClassifyReturnRequest{Offsets: []uint32{0}}
	for _, p := range c.places {
		offset := int(p.PC - p.Start)
		req.PCs = append(req.PCs, p.PC)
		req.Code = append(req.Code, p.Code[max(0, offset-int(c.description.MaxInstruction)):offset]...)
		req.Offsets = append(req.Offsets, uint32(len(req.Code)))
	}
	a, err := c.arch.ClassifyReturn(ctx, req)
	return checked(req, a, err, func(a *sdk.ClassifyReturnAnswer) error { return a.Validate(c.description, req) })
}

func callDisassemble(ctx context.Context, c *pluginCall) (exchange, error) {
	p := c.places[0]
	req := &sdk.DisassembleRequest{Address: p.PC, Code: p.Code[p.PC-p.Start:]}
	a, err := c.arch.Disassemble(ctx, req)
	return checked(req, a, err, func(a *sdk.DisassembleAnswer) error { return a.Validate(c.description, req) })
}

// engine returns the engine that a call about a code object may use.
func (c *pluginCall) engine() sdk.Engine {
	if c.description.NoEngine {
		return nil
	}
	return verify.EngineOf(c.object)
}

// check refuses arguments that are too few or too many.
func (m *callMethod) check(name string, args []string, f *pluginCallFlags) error {
	isOfRuntime := m.subject == aboutRuntime
	switch {
	case len(args) < m.least:
		return usageError{fmt.Errorf("plugin call %s: expected %s", name, m.arguments[len(args)])}
	case len(args) > m.most:
		return usageError{fmt.Errorf("plugin call %s: %q is one argument too many", name, args[len(args)-1])}
	case f.arch != "" && f.runtime != "":
		return usageError{fmt.Errorf("plugin call %s: --arch and --runtime are of different plugins, expected one of them", name)}
	case f.arch != "" && isOfRuntime:
		return usageError{fmt.Errorf("plugin call %s: a language runtime is called, expected --runtime instead of --arch", name)}
	case f.runtime != "" && !isOfRuntime && m.subject != aboutNothing:
		return usageError{fmt.Errorf("plugin call %s: an architecture is called, expected --arch instead of --runtime", name)}
	case m.subject == aboutNothing && f.arch == "" && f.runtime == "":
		return usageError{fmt.Errorf("plugin call %s: expected --arch or --runtime", name)}
	}
	return nil
}

func (f *pluginCallFlags) run(ctx context.Context, args []string) error {
	name, args := args[0], args[1:]
	method, ok := callMethods[name]
	if !ok {
		return usageError{fmt.Errorf("plugin call %s: expected %s", name, strings.Join(slices.Sorted(maps.Keys(callMethods)), ", "))}
	}
	if err := method.check(name, args, f); err != nil {
		return err
	}
	call := f.callArchitecture
	if method.subject == aboutRuntime || f.runtime != "" {
		call = f.callRuntime
	}
	m, err := call(ctx, &method, args)
	if err != nil {
		if errors.As(err, new(noPlugin)) || strings.HasPrefix(err.Error(), name+": ") { // errors of the plugin's own begin so
			return err
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := f.write(func(w *writer) error { return report.WriteJSON(w, f.document(&m)) }); err != nil {
		return err
	}
	return m.problem
}

// document returns the printed JSON.
func (f *pluginCallFlags) document(m *exchange) any {
	answer := plainJSON(reflect.ValueOf(m.answer))
	if !f.request {
		return answer
	}
	return struct{ Request, Answer any }{plainJSON(reflect.ValueOf(m.request)), answer}
}

// callArchitecture makes a call of an architecture.
func (f *pluginCallFlags) callArchitecture(ctx context.Context, method *callMethod, args []string) (exchange, error) {
	p, others, err := f.probe(ctx, method, args)
	if err != nil {
		return exchange{}, noPlugin{err}
	}
	defer p.Close()
	c := &pluginCall{arch: verify.Architecture(p), args: args}
	return c.call(ctx, method, others)
}

// noPlugin is the error of a call that was not made, for there is no plugin to ask.
type noPlugin struct{ error }

// Unwrap returns the error.
func (n noPlugin) Unwrap() error { return n.error }

// call reads what the method is about, and makes the call. others describe the other
// architectures.
func (c *pluginCall) call(ctx context.Context, method *callMethod, others []*sdk.Description) (m exchange, err error) {
	if c.description, err = c.arch.Describe(ctx); err != nil {
		return exchange{}, err
	}
	if c.description == nil {
		return exchange{}, errors.New("there is no description")
	}
	switch method.subject {
	case aboutObject:
		err = c.read()
	case aboutTarget:
		if c.target, err = verify.OpenTarget(ctx, c.arch, c.description, others, c.args[0]); err == nil {
			defer c.target.Close()
		}
	}
	if err != nil {
		return exchange{}, err
	}
	return method.make(ctx, c)
}

// probe starts the plugin. others describe the architectures that a target may need besides.
func (f *pluginCallFlags) probe(ctx context.Context, method *callMethod, args []string) (p *plugin.Probe, others []*sdk.Description, err error) {
	o, err := f.plugins()
	if err != nil {
		return nil, nil, err
	}
	name, isPath := f.arch, strings.ContainsRune(f.arch, '/')
	if isPath {
		name = plugin.NameOf(f.arch)
		if _, isAttached := o.Attached[name]; isAttached {
			isPath = false
		}
	}
	ofPath := plugin.ProbeOptions{Self: o.Self, Build: o.Build, Path: f.arch, Logger: o.Logger}
	if isPath && method.subject != aboutTarget {
		p, err = plugin.StartProbe(ctx, ofPath)
		return p, nil, err
	}
	m, err := plugin.NewManager(o)
	if err != nil {
		return nil, nil, f.ofSetting(err)
	}
	defer m.Close()
	if method.subject == aboutTarget {
		others = m.Descriptions()
	}
	if isPath {
		p, err = plugin.StartProbe(ctx, ofPath)
		return p, others, err
	}
	if name == "" {
		if name, err = recogniser(m, method, args[0]); err != nil {
			return nil, nil, err
		}
	}
	p, err = m.Probe(ctx, name)
	return p, others, err
}

// recogniser returns the name of the architecture that recognises a file, or reads a target.
func recogniser(m *plugin.Manager, method *callMethod, path string) (string, error) {
	if method.subject == aboutTarget {
		return verify.NoteReader(m.Descriptions(), path)
	}
	a, err := m.ForFile(path)
	if err != nil {
		return "", err
	}
	return a.Name(), nil
}

// read reads the code object and finds the requested places in it.
func (c *pluginCall) read() error {
	var err error
	if c.object, err = plugin.ReadObject(c.args[0], 1, c.description); err != nil {
		return err
	}
	for _, arg := range c.args[1:] {
		i := slices.IndexFunc(c.object.Functions, func(f sdk.CodeRange) bool { return f.Name == arg })
		address := uint64(0)
		if i < 0 {
			if address, err = strconv.ParseUint(strings.TrimPrefix(arg, "0x"), 16, 64); err != nil {
				return fmt.Errorf("%s: %q is neither a function of it nor an address in hex", c.args[0], arg)
			}
			i = slices.IndexFunc(c.object.Functions, func(f sdk.CodeRange) bool { return address-f.Start < uint64(len(f.Code)) })
		}
		if i < 0 {
			return fmt.Errorf("%s: %#x is in no function of it", c.args[0], address)
		}
		place := c.object.Functions[i]
		place.PC = cmp.Or(address, place.Start)
		c.places = append(c.places, place)
	}
	return nil
}

// plainJSON converts a value for JSON: bytes become hex, and zero and empty fields are left
// out.
func plainJSON(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return plainJSON(v.Elem())
	case reflect.Struct:
		members := map[string]any{}
		for i := range v.NumField() {
			if field := v.Field(i); !field.IsZero() {
				members[v.Type().Field(i).Name] = plainJSON(field)
			}
		}
		return members
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 && v.Type().Elem().Name() == "uint8" {
			return hex.EncodeToString(v.Bytes())
		}
		list := make([]any, v.Len())
		for i := range list {
			list[i] = plainJSON(v.Index(i))
		}
		return list
	}
	return v.Interface()
}
