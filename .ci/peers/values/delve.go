// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"go/constant"
	"math"
	"reflect"
	"strconv"

	"github.com/go-delve/delve/pkg/proc"
	"github.com/go-delve/delve/pkg/proc/core"
	"github.com/go-delve/delve/service/api"

	"github.com/unwindd/unwindd/internal/valuecheck"
)

// loaded is how much of a value delve reads.
var loaded = proc.LoadConfig{FollowPointers: false, MaxVariableRecurse: 12, MaxStringLen: 4096, MaxArrayValues: 200, MaxStructFields: -1}

// delveValues are the values of a Go program's core as delve has them.
func delveValues(exe, path string) (*valuecheck.Peer, error) {
	group, err := core.OpenCore(path, exe, nil)
	if err != nil {
		return nil, err
	}
	target := group.Selected
	peer := &valuecheck.Peer{IsDelve: true}
	for _, thread := range target.ThreadList() {
		frames, err := proc.ThreadStacktrace(target, thread, 1000)
		if err != nil {
			return nil, err
		}
		t := valuecheck.PeerThread{ID: strconv.Itoa(thread.ThreadID())}
		g, _ := proc.GetG(thread)
		for i := range frames {
			f := delveFrame(&frames[i])
			if f.Own {
				f.Variables = delveVariables(proc.FrameToScope(target, thread.ProcessMemory(), g, thread.ThreadID(), frames[i:]...))
			}
			t.Frames = append(t.Frames, f)
		}
		peer.Threads = append(peer.Threads, t)
	}
	return peer, nil
}

func delveFrame(f *proc.Stackframe) valuecheck.PeerFrame {
	frame := valuecheck.PeerFrame{Kind: "normal", PC: fmt.Sprintf("0x%x", f.Current.PC)}
	if f.Inlined {
		frame.Kind = "inline"
	}
	if f.Call.Fn != nil {
		frame.Function, frame.Own = f.Call.Fn.Name, true
	}
	return frame
}

func delveVariables(scope *proc.EvalScope) []*valuecheck.Node {
	var all []*valuecheck.Node
	for _, read := range []struct {
		kind string
		load func(proc.LoadConfig) ([]*proc.Variable, error)
	}{{"parameter", scope.FunctionArguments}, {"local", scope.LocalVariables}} {
		variables, err := read.load(loaded)
		if err != nil {
			continue
		}
		for _, v := range variables {
			n := delveNode(v.Name, v)
			n.Kind, n.Line = read.kind, int(v.DeclLine)
			n.Place = v.LocationExpr.String()
			if v.Flags&proc.VariableEscaped != 0 { // what the debug information has is a pointer of this name
				n = &valuecheck.Node{Name: "&" + n.Name, Code: "escaped", Kind: n.Kind, Line: n.Line, Place: n.Place, Type: "*" + n.Type, Children: []*valuecheck.Node{n}}
			}
			all = append(all, n)
		}
	}
	return all
}

// sizes has the sizes of kinds whose values are numbers.
var sizes = map[reflect.Kind]int{
	reflect.Bool: 1, reflect.Int8: 1, reflect.Int16: 2, reflect.Int32: 4, reflect.Int64: 8, reflect.Int: 8,
	reflect.Uint8: 1, reflect.Uint16: 2, reflect.Uint32: 4, reflect.Uint64: 8, reflect.Uint: 8, reflect.Uintptr: 8,
}

// delveNode is a value as the comparison reads them: numbers as bytes.
func delveNode(name string, v *proc.Variable) *valuecheck.Node {
	n := &valuecheck.Node{Name: name, Type: api.PrettyTypeName(v.DwarfType), Text: api.VariableValueAsString(v)}
	if v.Addr != 0 {
		n.Address = fmt.Sprintf("0x%x", v.Addr)
	}
	if v.Unreadable != nil {
		n.Error = v.Unreadable.Error()
		return n
	}
	switch v.Kind {
	case reflect.Bool:
		n.Code = "bool"
		n.Bytes = map[bool]string{false: "00", true: "01"}[constant.BoolVal(v.Value)]
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		x, _ := constant.Int64Val(v.Value)
		n.Code, n.Signed, n.Bytes = "int", true, number(uint64(x), sizes[v.Kind])
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		x, _ := constant.Uint64Val(v.Value)
		n.Code, n.Bytes = "int", number(x, sizes[v.Kind])
	case reflect.Float32, reflect.Float64:
		delveFloat(n, v)
	case reflect.Complex64, reflect.Complex128:
		n.Code = "complex"
		n.Bytes = part(constant.Real(v.Value), v.Kind) + part(constant.Imag(v.Value), v.Kind)
	case reflect.String:
		n.Code, n.Pretty, n.Hint = "text", true, "string"
		n.Text = strconv.Quote(constant.StringVal(v.Value))
	case reflect.Pointer, reflect.UnsafePointer:
		n.Code = "ptr"
		if len(v.Children) > 0 {
			n.Bytes = number(v.Children[0].Addr, 8)
			n.Text = fmt.Sprintf("0x%x", v.Children[0].Addr)
		}
	case reflect.Func:
		n.Code, n.Text = "func", constant.StringVal(v.Value)
	default:
		delveParts(n, v)
	}
	return n
}

// delveParts adds the parts of a value.
func delveParts(n *valuecheck.Node, v *proc.Variable) {
	n.Code, n.Elements = "struct", int(v.Len)
	switch v.Kind {
	case reflect.Slice, reflect.Array:
		n.Code, n.Text = "array", ""
	case reflect.Map:
		n.Pretty, n.Hint, n.Text = true, "map", ""
		n.Cut = len(v.Children) < 2*int(v.Len)
	case reflect.Chan:
		n.Code, n.Text = "chan", ""
	case reflect.Interface:
		n.Code, n.Text = "interface", ""
	}
	for i := range v.Children {
		name := v.Children[i].Name
		if n.Code == "array" {
			name = fmt.Sprintf("[%d]", i)
		}
		n.Children = append(n.Children, delveNode(name, &v.Children[i]))
	}
	if n.Code == "struct" && !n.Pretty && len(v.Children) < int(v.Len) {
		n.Cut = true
	}
}

func number(x uint64, size int) string {
	return hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, x)[:size])
}

// delveFloat takes a number's bytes, or says its word if it is none.
func delveFloat(n *valuecheck.Node, v *proc.Variable) {
	n.Code = "flt"
	switch v.FloatSpecial {
	case proc.FloatIsNaN:
		n.Text = "nan"
		n.Bytes = part(constant.MakeFloat64(0), v.Kind)
	case proc.FloatIsPosInf:
		n.Text, n.Bytes = "inf", floatBytes(math.Inf(1), v.Kind)
	case proc.FloatIsNegInf:
		n.Text, n.Bytes = "-inf", floatBytes(math.Inf(-1), v.Kind)
	default:
		n.Bytes = part(v.Value, v.Kind)
	}
}

func part(x constant.Value, kind reflect.Kind) string {
	f, _ := constant.Float64Val(x)
	return floatBytes(f, kind)
}

func floatBytes(f float64, kind reflect.Kind) string {
	if kind == reflect.Float32 || kind == reflect.Complex64 {
		return number(uint64(math.Float32bits(float32(f))), 4)
	}
	return number(math.Float64bits(f), 8)
}
