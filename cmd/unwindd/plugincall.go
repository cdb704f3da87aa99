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
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// pluginCallFlags are the flags of `unwindd plugin call`.
type pluginCallFlags struct {
	*globals
	arch string
}

func newPluginCall(g *globals) *cobra.Command {
	f := &pluginCallFlags{globals: g}
	cmd := &cobra.Command{
		Use:   "call METHOD [FILE [FUNCTION|ADDRESS...]]",
		Short: "Make one call of a plugin and print what it answers",
		Long: `Start a plugin, make one call of it and print the answer as JSON, as it came: members
have the names of package sdk, bytes are hex, and what is 0 or empty is left out. An
answer that unwindd would refuse is printed, and then what is wrong with it.

METHOD is Describe, OpenObject, FrameRules, ClassifyReturn or Disassemble. All but
Describe are about a code object, FILE, and all but OpenObject about functions or
addresses in it, in hex.`,
		Example: `  unwindd plugin call FrameRules server main
  unwindd plugin call Disassemble server 0x1257 --arch x86_64
  unwindd plugin call Describe --arch ./unwindd-arch-mychip`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), args) },
	}
	cmd.Flags().StringVar(&f.arch, "arch", "", "call architecture `A`, or the plugin whose executable is at that path; the default is the one that recognises FILE")
	return cmd
}

// pluginCall is the state of a call.
type pluginCall struct {
	*plugin.Probe
	description *sdk.Description
	object      *archtest.Object // nil for Describe
	places      []sdk.CodeRange
}

// oneCall makes a call. problem describes an invalid answer.
type oneCall func(ctx context.Context, c *pluginCall, arch sdk.Architecture) (answer any, problem, err error)

var pluginCalls = map[string]oneCall{
	"Describe": func(_ context.Context, c *pluginCall, _ sdk.Architecture) (any, error, error) {
		return c.description, c.description.Validate(), nil
	},
	"OpenObject": func(ctx context.Context, c *pluginCall, arch sdk.Architecture) (any, error, error) {
		a, err := arch.OpenObject(ctx, c.engine(), &c.object.Request)
		if err != nil {
			return nil, nil, err
		}
		return a, a.Validate(c.description, &c.object.Request), nil
	},
	"FrameRules": func(ctx context.Context, c *pluginCall, arch sdk.Architecture) (any, error, error) {
		// The plugin may rely on having seen the object.
		if _, err := arch.OpenObject(ctx, c.engine(), &c.object.Request); err != nil {
			return nil, nil, err
		}
		req := &sdk.FrameRulesRequest{Object: c.object.Request.Object, Functions: c.places}
		a, err := arch.FrameRules(ctx, c.engine(), req)
		if err != nil {
			return nil, nil, err
		}
		return a, a.Validate(c.description, req), nil
	},
	"ClassifyReturn": func(ctx context.Context, c *pluginCall, arch sdk.Architecture) (any, error, error) {
		req := &sdk.ClassifyReturnRequest{Offsets: []uint32{0}}
		for _, p := range c.places {
			offset := int(p.PC - p.Start)
			req.PCs = append(req.PCs, p.PC)
			req.Code = append(req.Code, p.Code[max(0, offset-int(c.description.MaxInstruction)):offset]...)
			req.Offsets = append(req.Offsets, uint32(len(req.Code)))
		}
		a, err := arch.ClassifyReturn(ctx, req)
		if err != nil {
			return nil, nil, err
		}
		return a, a.Validate(c.description, req), nil
	},
	"Disassemble": func(ctx context.Context, c *pluginCall, arch sdk.Architecture) (any, error, error) {
		p := c.places[0]
		req := &sdk.DisassembleRequest{Address: p.PC, Code: p.Code[p.PC-p.Start:]}
		a, err := arch.Disassemble(ctx, req)
		if err != nil {
			return nil, nil, err
		}
		return a, a.Validate(c.description, req), nil
	},
}

// engine returns the engine that a call may use.
func (c *pluginCall) engine() sdk.Engine {
	if c.description.NoEngine {
		return nil
	}
	return verify.EngineOf(c.object)
}

func (f *pluginCallFlags) run(ctx context.Context, args []string) error {
	method, args := args[0], args[1:]
	call, ok := pluginCalls[method]
	needsFile, needsPlace := method != "Describe", method != "Describe" && method != "OpenObject"
	switch {
	case !ok:
		return usageError{fmt.Errorf("plugin call %s: expected %s", method, strings.Join(slices.Sorted(maps.Keys(pluginCalls)), ", "))}
	case needsFile && len(args) == 0:
		return usageError{fmt.Errorf("plugin call %s: expected FILE, a code object", method)}
	case needsPlace && len(args) == 1:
		return usageError{fmt.Errorf("plugin call %s: expected a FUNCTION or an ADDRESS of %s", method, args[0])}
	case !needsFile && len(args) > 0, needsFile && !needsPlace && len(args) > 1, method == "Disassemble" && len(args) > 2:
		return usageError{fmt.Errorf("plugin call %s: %q is one argument too many", method, args[len(args)-1])}
	case !needsFile && f.arch == "":
		return usageError{fmt.Errorf("plugin call %s: expected --arch", method)}
	}
	p, err := f.probe(ctx, args)
	if err != nil {
		return err
	}
	defer p.Close()
	c := &pluginCall{Probe: p}
	var answer any
	var problem error
	err = p.Call(ctx, func(ctx context.Context, arch sdk.Architecture) (err error) {
		if c.description, err = arch.Describe(ctx); err != nil {
			return err
		}
		if c.description == nil {
			return errors.New("there is no description")
		}
		if err := c.read(args); err != nil {
			return err
		}
		answer, problem, err = call(ctx, c, arch)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if err := f.write(func(w *writer) error { return report.WriteJSON(w, plainJSON(reflect.ValueOf(answer))) }); err != nil {
		return err
	}
	return problem
}

// probe starts the plugin.
func (f *pluginCallFlags) probe(ctx context.Context, args []string) (*plugin.Probe, error) {
	o, err := f.plugins()
	if err != nil {
		return nil, err
	}
	name := f.arch
	if strings.ContainsRune(name, '/') {
		name = plugin.NameOf(name)
	}
	if _, isAttached := o.Attached[name]; !isAttached && name != f.arch {
		return plugin.StartProbe(ctx, plugin.ProbeOptions{Self: o.Self, Build: o.Build, Path: f.arch, Logger: o.Logger})
	}
	m, err := plugin.NewManager(o)
	if err != nil {
		return nil, f.ofSetting(err)
	}
	defer m.Close()
	if name == "" {
		a, err := m.ForFile(args[0])
		if err != nil {
			return nil, err
		}
		name = a.Name()
	}
	return m.Probe(ctx, name)
}

// read reads the code object and finds the requested places in it.
func (c *pluginCall) read(args []string) error {
	if len(args) == 0 {
		return nil
	}
	var err error
	if c.object, err = plugin.ReadObject(args[0], 1, c.description); err != nil {
		return err
	}
	for _, arg := range args[1:] {
		i := slices.IndexFunc(c.object.Functions, func(f sdk.CodeRange) bool { return f.Name == arg })
		address := uint64(0)
		if i < 0 {
			if address, err = strconv.ParseUint(strings.TrimPrefix(arg, "0x"), 16, 64); err != nil {
				return fmt.Errorf("%s: %q is neither a function of it nor an address in hex", args[0], arg)
			}
			i = slices.IndexFunc(c.object.Functions, func(f sdk.CodeRange) bool { return address-f.Start < uint64(len(f.Code)) })
		}
		if i < 0 {
			return fmt.Errorf("%s: %#x is in no function of it", args[0], address)
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
